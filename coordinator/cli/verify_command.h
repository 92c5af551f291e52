// `resbm verify`: is the pipeline the same as one process, bit for bit?
#ifndef RESBM_COORDINATOR_CLI_VERIFY_COMMAND_H_
#define RESBM_COORDINATOR_CLI_VERIFY_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/cli/options.h"

namespace resbm::coordinator {

struct VerifyOptions {
  JobOptions job;
  FleetOptions fleet;  // of the split run
  std::int64_t steps = 3;
  std::vector<std::string> split_set;  // job fields of the split run only
  // Instead of training: two run directories.
  std::string run_dir;
  std::string against;
  OutputOptions output;
};

void AddTo(CLI::App* app, VerifyOptions* options);

// The exit code: 1 when they differ. Everything that went wrong has been said on stderr.
int Verify(const VerifyOptions& options);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_VERIFY_COMMAND_H_
