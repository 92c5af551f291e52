// How `resbm` ends; scripts rely on the numbers.
#ifndef RESBM_COORDINATOR_CLI_EXIT_CODE_H_
#define RESBM_COORDINATOR_CLI_EXIT_CODE_H_

namespace resbm::coordinator {

enum ExitCode : int {
  kExitOk = 0,
  kExitCheckFailed = 1,
  // Usage, job, files, run directory.
  kExitUsage = 2,
  // A peer unreachable, of a wrong version, or lost so that the run could not go on.
  kExitPeer = 3,
  // By a signal; what was learned is saved.
  kExitInterrupted = 130,
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_EXIT_CODE_H_
