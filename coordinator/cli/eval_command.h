// `resbm eval`: loss and accuracy of a run's weights on the test set.
#ifndef RESBM_COORDINATOR_CLI_EVAL_COMMAND_H_
#define RESBM_COORDINATOR_CLI_EVAL_COMMAND_H_

#include <string>

#include "coordinator/cli/options.h"

namespace resbm::coordinator {

struct EvalOptions {
  JobOptions job;
  FleetOptions fleet;
  OutputOptions output;
  std::string run_dir;
  std::string weights;
};

void AddTo(CLI::App* app, EvalOptions* options);

// The exit code. Everything that went wrong has been said on stderr.
int Eval(const EvalOptions& options);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_EVAL_COMMAND_H_
