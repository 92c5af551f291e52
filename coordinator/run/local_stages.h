// Stage servers that the coordinator starts on its own machine.
#ifndef RESBM_COORDINATOR_RUN_LOCAL_STAGES_H_
#define RESBM_COORDINATOR_RUN_LOCAL_STAGES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace resbm::coordinator {

// Processes on loopback ports of the system's choice. They end with this object, and, should the
// coordinator be killed, by themselves.
class LocalStages {
 public:
  struct Options {
    std::string binary;         // of stage_server
    std::string log_directory;  // each writes stage-<k>.log there
    int count = 1;
    std::string device = "auto";
    absl::Duration start_timeout = absl::Seconds(30);
  };

  // Returns when all listen. NOT_FOUND: no such binary. INVALID_ARGUMENT: one refused what it was
  // started with (--device), in its own words. UNAVAILABLE: one ended or said nothing in time; the
  // message has the last line of its log. Call from the main thread: the processes end with the thread that
  // started them.
  static absl::StatusOr<std::unique_ptr<LocalStages>> Start(const Options& options);
  // SIGTERM, then SIGKILL after 5 s; waits.
  ~LocalStages();

  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  struct Process {
    int pid = -1;
    std::string log;
  };

  LocalStages() = default;

  std::vector<Process> processes_;
  std::vector<std::string> addresses_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_LOCAL_STAGES_H_
