#include "coordinator/status/doing.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace resbm::coordinator {
namespace {

std::string Waiting(const v1::DescribeReply& stage, const v1::WaitingFor& waiting) {
  const std::string neighbour = NeighbourName(stage, waiting.direction());
  const bool from_coordinator = neighbour == "coordinator";
  const std::uint32_t link = stage.stage() + (waiting.direction() == v1::UP ? 0 : 1);
  // An evaluation waits for what it sends to be on its way; nothing comes up to it from a later stage.
  const bool sends = stage.state() == "EVALUATING" && waiting.direction() == v1::DOWN && !from_coordinator;
  return absl::StrFormat("waits %.0f s for micro-batch %d %s %s%s%s", waiting.seconds(), waiting.micro_batch(),
                         sends ? "to leave for" : "from", from_coordinator ? "the " : "", neighbour,
                         waiting.link_connected() ? "" : absl::StrCat(": link ", link, " is down"));
}

}  // namespace

std::string NeighbourName(const v1::DescribeReply& stage, v1::Direction direction) {
  if (direction == v1::UP) return stage.stage() == 0 ? "coordinator" : absl::StrCat("stage ", stage.stage() - 1);
  return stage.stage() + 1 >= stage.stages() ? "coordinator" : absl::StrCat("stage ", stage.stage() + 1);
}

std::string Doing(const v1::DescribeReply& stage) {
  const std::string& state = stage.state();
  if (stage.job_id().empty()) return "free";
  if (state == "LOADING") return "loads its weights";
  if (state == "COMPUTED") return absl::StrFormat("step %d: computed, waits for the coordinator", stage.step() + 1);
  if (state == "APPLYING") return absl::StrFormat("step %d: applies it", stage.step() + 1);
  if (state == "FAILED") return "has failed, waits for the coordinator";
  if (!stage.has_progress()) return "waits for the coordinator";
  const v1::Progress& progress = stage.progress();
  const std::string work = state == "EVALUATING" ? "evaluation" : absl::StrCat("step ", progress.step());
  if (progress.has_waiting_for()) return absl::StrCat(work, ": ", Waiting(stage, progress.waiting_for()));
  if (state == "EVALUATING") return absl::StrFormat("%s: computes, %d forward are done", work, progress.forwards());
  return absl::StrFormat("%s: computes, %d forward and %d backward are done", work, progress.forwards(),
                         progress.backwards());
}

}  // namespace resbm::coordinator
