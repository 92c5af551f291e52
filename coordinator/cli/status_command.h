// `resbm status`: what the stages of a run do at the moment.
#ifndef RESBM_COORDINATOR_CLI_STATUS_COMMAND_H_
#define RESBM_COORDINATOR_CLI_STATUS_COMMAND_H_

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "coordinator/cli/options.h"

namespace resbm::coordinator {

struct StatusOptions {
  std::string run_dir;              // or
  std::vector<std::string> stages;  // host:port
  std::string watch;                // seconds between two looks; empty: once
  double timeout_seconds = 3;
  OutputOptions output;
};

void AddTo(CLI::App* app, StatusOptions* options);

// kExitOk; kExitPeer when a stage server does not answer (the others are shown); kExitUsage; kExitInterrupted when a
// watch was ended by a signal. A watch of a run directory ends by itself when the run has.
int ShowStatus(const StatusOptions& options);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_STATUS_COMMAND_H_
