#include "stage_server/host/readiness.h"

#include "absl/strings/str_cat.h"
#include "stage_server/core/stage_machine.h"

namespace resbm::stage_server {

absl::Status Readiness(const v1::DescribeReply& now, bool attached) {
  if (now.job_id().empty()) return absl::OkStatus();
  if (now.state() == StateName(State::kFailed)) {
    return absl::FailedPreconditionError("its step has failed; it waits for its coordinator");
  }
  if (!attached) return absl::UnavailableError("its coordinator is gone, and the lease of the job runs");
  const v1::WaitingFor& waiting = now.progress().waiting_for();
  if (now.progress().has_waiting_for() && !waiting.link_connected() &&
      absl::Seconds(waiting.seconds()) >= kReadyPatience) {
    return absl::UnavailableError(absl::StrCat("it waits for micro-batch ", waiting.micro_batch(), " and link ",
                                               now.stage() + (waiting.direction() == v1::UP ? 0 : 1), " is down"));
  }
  return absl::OkStatus();
}

}  // namespace resbm::stage_server
