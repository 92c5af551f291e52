// `resbm compare`: finished runs side by side.
#ifndef RESBM_COORDINATOR_CLI_COMPARE_COMMAND_H_
#define RESBM_COORDINATOR_CLI_COMPARE_COMMAND_H_

#include <string>
#include <vector>

#include "coordinator/cli/options.h"

namespace resbm::coordinator {

struct CompareOptions {
  std::vector<std::string> runs;   // directories, grouped by their jobs
  std::vector<std::string> arms;   // NAME=DIR,DIR,...
  std::vector<std::string> gates;  // NAME=LIMIT
  std::string csv;                 // a file; "" = none
  OutputOptions output;
};

void AddTo(CLI::App* app, CompareOptions* options);

// The exit code: 1 when a gate failed. Everything that went wrong has been said on stderr.
int CompareRunDirectories(const CompareOptions& options);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_COMPARE_COMMAND_H_
