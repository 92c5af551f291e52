#include "stage_server/host/event_line.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "stage_server/core/fence.h"

namespace resbm::stage_server {
namespace {

std::string NonFiniteText(const google::protobuf::RepeatedPtrField<v1::NonFinite>& counts) {
  std::string text;
  for (const v1::NonFinite& count : counts) absl::StrAppend(&text, ", ", count.count(), " non-finite in ", count.where());
  return text;
}

}  // namespace

std::string WhereLine(const StageMachine& machine) {
  const Tenancy& tenancy = machine.tenancy();
  if (tenancy.free()) return "job=-";
  return absl::StrCat("job=", tenancy.job_id(), " stage=", tenancy.stage(), "/", tenancy.stages(),
                      " fence=", FenceText(tenancy.fence()), " step=", machine.step());
}

std::string EventLine(const v1::ControlEvent& event) {
  switch (event.kind_case()) {
    case v1::ControlEvent::kAttached:
      return absl::StrFormat("attached: state %016x%s", event.attached().state_id(),
                             event.attached().has_computed() ? ", with a computed step" : "");
    case v1::ControlEvent::kRefused:
      return absl::StrCat("refused fence ", FenceText(event.fence()), ": ", event.refused().reason());
    case v1::ControlEvent::kReady:
      return absl::StrFormat("ready: state %016x, %d parameters, %.1f MB weights, %.1f MB optimizer",
                             event.ready().state_id(), event.ready().parameter_names_size(),
                             event.ready().memory().weights_bytes() / 1e6, event.ready().memory().optimizer_bytes() / 1e6);
    case v1::ControlEvent::kComputed:
      return absl::StrFormat("computed step %d: %.3f s, waited %.3f s up, %.3f s down%s",
                             event.computed().attempt().step(), event.computed().times().total_seconds(),
                             event.computed().times().waiting_up_seconds(),
                             event.computed().times().waiting_down_seconds(), NonFiniteText(event.computed().non_finite()));
    case v1::ControlEvent::kCommitted: return absl::StrFormat("committed: state %016x", event.committed().state_id());
    case v1::ControlEvent::kFailed:
      return absl::StrCat("failed in ", event.failed().phase(), " (",
                          absl::StatusCodeToString(static_cast<absl::StatusCode>(event.failed().code())), ", ",
                          v1::Direction_Name(event.failed().blame()), "): ", event.failed().text());
    case v1::ControlEvent::kEvaluated:
      return absl::StrFormat("evaluated: %.3f s%s", event.evaluated().times().total_seconds(),
                             NonFiniteText(event.evaluated().non_finite()));
    default: return "";
  }
}

LogLevel EventLevel(const v1::ControlEvent& event) {
  switch (event.kind_case()) {
    case v1::ControlEvent::kFailed: return LogLevel::kError;
    case v1::ControlEvent::kRefused: return LogLevel::kWarning;
    case v1::ControlEvent::kComputed:
      return event.computed().non_finite().empty() ? LogLevel::kStep : LogLevel::kWarning;
    case v1::ControlEvent::kCommitted: return LogLevel::kStep;
    default: return LogLevel::kInfo;
  }
}

}  // namespace resbm::stage_server
