// What `train` and `eval` share: from options to a finished run.
#ifndef RESBM_COORDINATOR_CLI_RUN_COMMAND_H_
#define RESBM_COORDINATOR_CLI_RUN_COMMAND_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/cli/options.h"
#include "coordinator/job/load_job.h"
#include "coordinator/run/fleet.h"
#include "coordinator/run/run_host.h"
#include "coordinator/run/run_setup.h"

namespace resbm::coordinator {

// Addresses of the stage servers by --stages, else the job's stage{ address }, else none: local ones.
std::vector<std::string> StageAddresses(const FleetOptions& options, const v1::Job& job);

// Starts or reaches the stage servers. `log_directory`: of local ones.
absl::StatusOr<std::unique_ptr<Fleet>> MakeFleet(const FleetOptions& options, const RunSetup& setup,
                                                 const std::vector<std::string>& addresses,
                                                 const std::string& log_directory);

// Runs the host while SIGINT and SIGTERM are listened to: the first lets the step in work end, the second
// stops at once.
class SignalledRun {
 public:
  // Make it before any other thread.
  SignalledRun();
  ~SignalledRun();

  absl::Status Run(RunHost* host);
  bool interrupted() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Usage or peer, by where a status comes from: everything before the stages are attached is usage but for
// stage servers that cannot be reached or do not fit.
int ExitCodeOfFleet(const absl::Status& status);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_RUN_COMMAND_H_
