#include "stage_server/metrics/stage_totals.h"

#include "absl/status/status.h"

namespace resbm::stage_server {

void StageTotals::AddStep(const v1::WorkTimes& times) {
  forward_seconds += times.forward_seconds();
  backward_seconds += times.backward_seconds();
  waiting_up_seconds += times.waiting_up_seconds();
  waiting_down_seconds += times.waiting_down_seconds();
  commit_seconds += times.commit_seconds();
  step_seconds.Observe(times.total_seconds());
}

template <typename Report>
void StageTotals::AddReport(const Report& report) {
  memory = report.memory();
  for (const v1::NonFinite& count : report.non_finite()) {
    const bool known = non_finite.count(count.where()) > 0 || non_finite.size() < kMaxPlaces;
    non_finite[known ? count.where() : kOtherPlaces] += count.count();
  }
}

void StageTotals::Add(const v1::ControlEvent& event, const std::string& job) {
  if (job != job_id) {
    job_id = job;
    non_finite.clear();
    memory.reset();
  }
  switch (event.kind_case()) {
    case v1::ControlEvent::kComputed:
      AddReport(event.computed());
      AddStep(event.computed().times());
      break;
    case v1::ControlEvent::kEvaluated:
      AddReport(event.evaluated());
      evaluation_seconds.Observe(event.evaluated().times().total_seconds());
      break;
    case v1::ControlEvent::kFailed:
      ++failures[absl::StatusCodeToString(static_cast<absl::StatusCode>(event.failed().code()))];
      break;
    default: break;
  }
}

}  // namespace resbm::stage_server
