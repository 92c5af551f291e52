// What a stage adds up of its steps over the life of its process, from the events that it sends its coordinator: a few
// additions once a step.
#ifndef RESBM_STAGE_SERVER_METRICS_STAGE_TOTALS_H_
#define RESBM_STAGE_SERVER_METRICS_STAGE_TOTALS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "proto/metrics/histogram.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::stage_server {

// Not synchronised: it belongs to the stage's thread, a snapshot holds a copy.
struct StageTotals {
  // Beyond so many places non-finite values are counted as of kOtherPlaces: a label has to stay small.
  static constexpr std::size_t kMaxPlaces = 64;
  static constexpr char kOtherPlaces[] = "other";

  // An event of `job_id`.
  void Add(const v1::ControlEvent& event, const std::string& job_id);

  // Of steps.
  double forward_seconds = 0;
  double backward_seconds = 0;
  double waiting_up_seconds = 0;
  double waiting_down_seconds = 0;
  double commit_seconds = 0;
  metrics::Histogram step_seconds;
  metrics::Histogram evaluation_seconds;
  // By canonical code.
  std::map<std::string, std::uint64_t> failures;
  // Of this job, by where they were.
  std::string job_id;
  std::map<std::string, std::uint64_t> non_finite;
  // As the last step or evaluation of this job left it.
  std::optional<v1::MemoryUse> memory;

 private:
  void AddStep(const v1::WorkTimes& times);
  // Of a step or an evaluation.
  template <typename Report>
  void AddReport(const Report& report);
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_METRICS_STAGE_TOTALS_H_
