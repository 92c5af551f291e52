#include "stage_server/host/event_line.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/wire/fence.h"

namespace resbm::stage_server {
namespace {

using Json = nlohmann::ordered_json;

std::string Hex(std::uint64_t state_id) { return absl::StrFormat("%016x", state_id); }

std::string NonFiniteText(const google::protobuf::RepeatedPtrField<v1::NonFinite>& counts) {
  return absl::StrJoin(counts, ", ", [](std::string* text, const v1::NonFinite& count) {
    absl::StrAppend(text, count.count(), " in ", count.where());
  });
}

void AddTimes(const v1::WorkTimes& times, Json* fields) {
  (*fields)["seconds"] = times.total_seconds();
  (*fields)["waiting_up_seconds"] = times.waiting_up_seconds();
  (*fields)["waiting_down_seconds"] = times.waiting_down_seconds();
}

std::string Dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

bool IsBare(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(c) && c != '"' && c != '=' && c != '\\';
  });
}

std::string TextOf(const Json& value) {
  if (value.is_string() && IsBare(value.get_ref<const std::string&>())) return value.get<std::string>();
  if (value.is_number_float()) return absl::StrFormat("%.6g", value.get<double>());
  return Dump(value);
}

}  // namespace

Json Where(const StageMachine& machine) {
  const Tenancy& tenancy = machine.tenancy();
  Json where = Json::object();
  if (tenancy.free()) return where;
  where["job"] = tenancy.job_id();
  where["stage"] = tenancy.stage();
  where["stages"] = tenancy.stages();
  where["fence"] = wire::FenceText(tenancy.fence());
  where["step"] = machine.step();
  return where;
}

std::optional<LogEvent> ToLogEvent(const v1::ControlEvent& event) {
  LogEvent log(LogLevel::kInfo, "");
  Json& fields = log.fields;
  switch (event.kind_case()) {
    case v1::ControlEvent::kAttached:
      log.name = "attached";
      fields["state_id"] = Hex(event.attached().state_id());
      if (event.attached().has_computed()) fields["computed_step"] = event.attached().computed().step();
      return log;
    case v1::ControlEvent::kRefused:
      log.level = LogLevel::kWarning;
      log.name = "refused";
      fields["refused_fence"] = wire::FenceText(event.fence());
      fields["error"] = event.refused().reason();
      return log;
    case v1::ControlEvent::kReady:
      log.name = "ready";
      fields["state_id"] = Hex(event.ready().state_id());
      fields["parameters"] = event.ready().parameter_names_size();
      fields["weights_bytes"] = event.ready().memory().weights_bytes();
      fields["optimizer_bytes"] = event.ready().memory().optimizer_bytes();
      return log;
    case v1::ControlEvent::kComputed:
      log.level = event.computed().non_finite().empty() ? LogLevel::kStep : LogLevel::kWarning;
      log.name = "computed";
      fields["computed_step"] = event.computed().attempt().step();
      AddTimes(event.computed().times(), &fields);
      if (!event.computed().non_finite().empty()) fields["non_finite"] = NonFiniteText(event.computed().non_finite());
      return log;
    case v1::ControlEvent::kCommitted:
      log.level = LogLevel::kStep;
      log.name = "committed";
      fields["state_id"] = Hex(event.committed().state_id());
      return log;
    case v1::ControlEvent::kFailed:
      log.level = LogLevel::kError;
      log.name = "failed";
      fields["phase"] = event.failed().phase();
      fields["code"] = absl::StatusCodeToString(static_cast<absl::StatusCode>(event.failed().code()));
      fields["blame"] = v1::Direction_Name(event.failed().blame());
      fields["error"] = event.failed().text();
      return log;
    case v1::ControlEvent::kEvaluated:
      log.name = "evaluated";
      AddTimes(event.evaluated().times(), &fields);
      if (!event.evaluated().non_finite().empty()) fields["non_finite"] = NonFiniteText(event.evaluated().non_finite());
      return log;
    default: return std::nullopt;
  }
}

std::string TextLine(const LogEvent& event) {
  std::string line = event.name;
  for (const auto& [key, value] : event.fields.items()) absl::StrAppend(&line, " ", key, "=", TextOf(value));
  return line;
}

std::string JsonFields(const LogEvent& event) {
  Json line = Json::object();
  line["event"] = event.name;
  line.update(event.fields);
  const std::string object = Dump(line);
  return object.substr(1, object.size() - 2);
}

}  // namespace resbm::stage_server
