// `resbm train`: train a job over stage servers, or over local ones that it starts itself.
#ifndef RESBM_COORDINATOR_CLI_TRAIN_COMMAND_H_
#define RESBM_COORDINATOR_CLI_TRAIN_COMMAND_H_

#include <string>

#include "coordinator/cli/options.h"

namespace resbm::coordinator {

struct TrainOptions {
  JobOptions job;
  FleetOptions fleet;
  OutputOptions output;
  RunDirectoryOptions run;
  bool resume = false;
  std::string metrics_listen;  // HOST:PORT; empty: no /metrics
  bool insecure = false;
};

void AddTo(CLI::App* app, TrainOptions* options);

// The exit code. Everything that went wrong has been said on stderr.
int Train(const TrainOptions& options);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_TRAIN_COMMAND_H_
