// What a run directory says of a run that may be going on.
#ifndef RESBM_COORDINATOR_STATUS_RUN_INFO_H_
#define RESBM_COORDINATOR_STATUS_RUN_INFO_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/report/stages_file.h"

namespace resbm::coordinator {

struct RunInfo {
  std::string directory;
  StagesFile stages;
  // The process that runs it, on this machine; absent: none does, or none that can be seen from here.
  std::optional<int> coordinator_pid;
  // Its summary is written.
  bool has_summary = false;

  // The last row of metrics.jsonl.
  struct Row {
    std::int64_t step = 0;
    std::int64_t epoch = 0;  // from 0
    std::optional<double> loss;
    double learning_rate = 0;
    double step_seconds = 0;
    bool skipped = false;
    double age_seconds = 0;  // since it was written
  };
  std::optional<Row> last;

  bool ended() const { return has_summary && !coordinator_pid.has_value(); }
};

// Touches nothing: a run that is going on is not disturbed. NOT_FOUND: no such directory, or no stages.json in it.
// DATA_LOSS: stages.json is none.
absl::StatusOr<RunInfo> ReadRunInfo(const std::string& directory);

// "runs/a-1: step 40 of 100, epoch 2, loss 0.4312, 1.9 s a step, 3 s ago; process 4711"
std::string Describe(const RunInfo& run);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_STATUS_RUN_INFO_H_
