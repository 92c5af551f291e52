#include "coordinator/status/status_text.h"

#include <algorithm>
#include <cstddef>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/report/columns.h"
#include "coordinator/status/doing.h"
#include "proto/wire/fence.h"

namespace resbm::coordinator {
namespace {

using Json = nlohmann::ordered_json;

// gRPC's own words differ with how a connection fails, and fill a line.
std::string ErrorText(const absl::Status& error) {
  if (absl::IsUnavailable(error)) return "cannot be reached; does the server run, is the port open?";
  if (absl::IsDeadlineExceeded(error)) return "does not answer in time";
  if (absl::IsUnimplemented(error)) return "is no stage server, or one of another release";
  return absl::StrCat(absl::StatusCodeToString(error.code()), ": ", error.message());
}

// Whose the stage is, where it is another's than the run's.
std::string Foreign(const v1::DescribeReply& reply, const std::optional<RunInfo>& run) {
  if (!run.has_value() || reply.job_id().empty() || reply.job_id() == run->stages.job_id) return "";
  return absl::StrCat("works for another job, ", reply.job_id());
}

std::string LinkText(bool open, const v1::LinkState& link) {
  if (!open) return "-";
  std::string text = link.connected() ? "ok" : "DOWN";
  if (link.connections() > 1) absl::StrAppend(&text, "+", link.connections() - 1);
  return text;
}

TableRow RowOf(const StageStatus& stage, const std::optional<RunInfo>& run) {
  if (!stage.error.ok()) {
    return {"-", stage.address, "-", ErrorText(stage.error), "-", "-", "-", "-", "-", "-", "-"};
  }
  const v1::DescribeReply& reply = stage.reply;
  const bool held = !reply.job_id().empty();
  const std::string foreign = Foreign(reply, run);
  return {held ? absl::StrCat(reply.stage(), "/", reply.stages()) : "-",
          stage.address,
          reply.state(),
          foreign.empty() ? Doing(reply) : foreign,
          held ? absl::StrCat(reply.step()) : "-",
          held ? wire::FenceText(reply.fence()) : "-",
          absl::StrCat(LinkText(reply.has_up(), reply.up()), " ", LinkText(reply.has_down(), reply.down())),
          held ? HumanBytes(static_cast<double>(reply.up().retained_bytes() + reply.down().retained_bytes())) : "-",
          held ? absl::StrCat(reply.up().inbox_tensors() + reply.down().inbox_tensors()) : "-",
          FormatDuration(reply.uptime_seconds()),
          reply.device()};
}

Json LinkToJson(const v1::LinkState& link) {
  return {{"connected", link.connected()},           {"connections", link.connections()},
          {"sent_bytes", link.sent_bytes()},         {"received_bytes", link.received_bytes()},
          {"retained_bytes", link.retained_bytes()}, {"inbox_tensors", link.inbox_tensors()}};
}

Json StageToJson(const StageStatus& stage) {
  Json json = {{"address", stage.address}, {"reachable", stage.error.ok()}};
  if (!stage.error.ok()) {
    json["error"] = stage.error.ToString();
    return json;
  }
  const v1::DescribeReply& reply = stage.reply;
  json["state"] = reply.state();
  if (!reply.job_id().empty()) {
    json["job"] = reply.job_id();
    json["stage"] = reply.stage();
    json["stages"] = reply.stages();
    json["fence"] = wire::FenceText(reply.fence());
    json["step"] = reply.step();
  }
  json["doing"] = Doing(reply);
  if (reply.has_progress()) {
    const v1::Progress& progress = reply.progress();
    json["progress"] = {{"forwards", progress.forwards()},
                        {"backwards", progress.backwards()},
                        {"inbox_bytes", progress.inbox_bytes()},
                        {"retained_bytes", progress.retained_bytes()}};
    if (progress.step() > 0) json["progress"]["step"] = progress.step();
    if (progress.has_waiting_for()) {
      const v1::WaitingFor& waiting = progress.waiting_for();
      json["waiting_for"] = {{"end", waiting.direction() == v1::UP ? "up" : "down"},
                             {"neighbour", NeighbourName(reply, waiting.direction())},
                             {"micro_batch", waiting.micro_batch()},
                             {"seconds", waiting.seconds()},
                             {"link_connected", waiting.link_connected()}};
    }
  }
  if (reply.has_up()) json["up"] = LinkToJson(reply.up());
  if (reply.has_down()) json["down"] = LinkToJson(reply.down());
  json["device"] = reply.device();
  json["device_name"] = reply.device_name();
  json["version"] = reply.server_version();
  json["uptime_seconds"] = reply.uptime_seconds();
  return json;
}

Json RunToJson(const RunInfo& run) {
  Json json = {{"directory", run.directory},
               {"job", run.stages.job_id},
               {"ended", run.ended()},
               {"total_steps", run.stages.total_steps}};
  if (run.coordinator_pid.has_value()) json["coordinator_pid"] = *run.coordinator_pid;
  if (run.last.has_value()) {
    json["step"] = run.last->step;
    json["epoch"] = run.last->epoch;
    json["loss"] = run.last->loss.has_value() ? Json(*run.last->loss) : Json(nullptr);
    json["learning_rate"] = run.last->learning_rate;
    json["step_seconds"] = run.last->step_seconds;
    json["age_seconds"] = run.last->age_seconds;
  }
  return json;
}

// "job a: 2 of 2 stages answer"; a line for each job that a stage is held by.
std::string JobLines(const Status& status) {
  std::vector<std::pair<std::string, std::size_t>> jobs;
  for (const StageStatus& stage : status.stages) {
    if (!stage.error.ok() || stage.reply.job_id().empty()) continue;
    const auto found =
        std::find_if(jobs.begin(), jobs.end(), [&](const auto& job) { return job.first == stage.reply.job_id(); });
    if (found == jobs.end()) {
      jobs.emplace_back(stage.reply.job_id(), 1);
    } else {
      ++found->second;
    }
  }
  std::string lines;
  for (const auto& [job, count] : jobs) {
    absl::StrAppendFormat(&lines, "job %s: holds %d of %d stage servers\n", job, count, status.stages.size());
  }
  return lines;
}

}  // namespace

bool Status::incomplete() const {
  return std::any_of(stages.begin(), stages.end(), [](const StageStatus& stage) { return !stage.error.ok(); });
}

std::string FormatStatus(const Status& status, const Terminal& terminal) {
  std::string text;
  if (status.run.has_value()) absl::StrAppend(&text, Describe(*status.run), "\n");
  if (status.stages.empty()) return text;
  absl::StrAppend(&text, JobLines(status));
  std::vector<TableRow> rows = {
      {"stage", "address", "state", "doing", "step", "fence", "links", "kept", "inbox", "uptime", "device"}};
  for (const StageStatus& stage : status.stages) rows.push_back(RowOf(stage, status.run));
  return absl::StrCat(text, FormatColumns(rows, /*left=*/4, terminal));
}

std::string StatusToJson(const Status& status) {
  Json json = Json::object();
  if (status.run.has_value()) json["run"] = RunToJson(*status.run);
  json["stages"] = Json::array();
  for (const StageStatus& stage : status.stages) json["stages"].push_back(StageToJson(stage));
  // Names come from other machines.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace resbm::coordinator
