// The status of a run, or of some stage servers, as a table and as JSON. Pure.
#ifndef RESBM_COORDINATOR_STATUS_STATUS_TEXT_H_
#define RESBM_COORDINATOR_STATUS_STATUS_TEXT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/report/terminal.h"
#include "coordinator/status/run_info.h"
#include "coordinator/status/stage_status.h"

namespace resbm::coordinator {

struct Status {
  std::optional<RunInfo> run;
  // Empty for a run that has ended.
  std::vector<StageStatus> stages;

  // One of them did not answer.
  bool incomplete() const;
};

// A line on the run, one on the job or jobs that the stages are held by, and a row for each stage, with their line
// ends.
std::string FormatStatus(const Status& status, const Terminal& terminal);

// One line: {"run": {...}, "stages": [{"address": ..., "reachable": true, "job": ..., "doing": ...}, ...]}; "run" only
// with a run directory, of a stage that does not answer only the address, "reachable" and "error".
std::string StatusToJson(const Status& status);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_STATUS_STATUS_TEXT_H_
