#include "stage_server/host/hello_desk.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/fence.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::stage_server {

std::optional<absl::StatusOr<std::shared_ptr<wire::LinkEndpoint>>> HelloDesk::Decide(const v1::Hello& hello,
                                                                                    const Situation& situation) {
  const Tenancy& tenancy = *situation.tenancy;
  const auto refuse = [&](const auto&... text) {
    return absl::StatusOr<std::shared_ptr<wire::LinkEndpoint>>(
        absl::FailedPreconditionError(absl::StrCat("Hello for link ", hello.link(), " of job ", hello.job_id(),
                                                   " at fence ", wire::FenceText(hello.fence()), ": ", text...)));
  };
  if (hello.protocol_version() != wire::kProtocolVersion) {
    return refuse("its protocol version is ", hello.protocol_version(), ", this stage server speaks ",
                  wire::kProtocolVersion, "; install the same release on both");
  }
  if (tenancy.free()) return std::nullopt;
  if (hello.job_id() != tenancy.job_id()) return refuse("the stage belongs to job ", tenancy.job_id());
  if (wire::Newer(tenancy.fence(), hello.fence())) {
    return refuse("the stage obeys the newer ", wire::FenceText(tenancy.fence()));
  }
  if (wire::Newer(hello.fence(), tenancy.fence()) || !situation.links_open) return std::nullopt;
  if (hello.link() == tenancy.stage()) return situation.endpoint(End::kUp);
  if (hello.link() == tenancy.stage() + 1) return situation.endpoint(End::kDown);
  return refuse("stage ", tenancy.stage(), " has links ", tenancy.stage(), " and ", tenancy.stage() + 1);
}

void HelloDesk::Arrive(const v1::Hello& hello, Found found, const Situation& situation, absl::Duration now) {
  if (auto decision = Decide(hello, situation); decision.has_value()) {
    found(*std::move(decision));
    return;
  }
  if (waiting_.size() >= kMaxWaitingHellos) {
    found(absl::UnavailableError(absl::StrCat(kMaxWaitingHellos, " Hellos wait already; try again later")));
    return;
  }
  waiting_.push_back({hello, std::move(found), now + patience_});
}

void HelloDesk::LookAgain(const Situation& situation, absl::Duration now) {
  for (auto visitor = waiting_.begin(); visitor != waiting_.end();) {
    auto decision = Decide(visitor->hello, situation);
    if (!decision.has_value() && now < visitor->until) {
      ++visitor;
      continue;
    }
    if (!decision.has_value()) {
      const Tenancy& tenancy = *situation.tenancy;
      decision = absl::UnavailableError(absl::StrCat(
          "Hello for link ", visitor->hello.link(), " of job ", visitor->hello.job_id(), " at fence ",
          wire::FenceText(visitor->hello.fence()), " waited ", absl::FormatDuration(patience_), "; the stage ",
          tenancy.free() ? "is free" : absl::StrCat("is at fence ", wire::FenceText(tenancy.fence())),
          situation.links_open ? "" : " without links", ". Does its coordinator reach it?"));
    }
    Found found = std::move(visitor->found);
    visitor = waiting_.erase(visitor);
    found(*std::move(decision));
  }
}

void HelloDesk::Close(const absl::Status& status) {
  for (Visitor& visitor : std::exchange(waiting_, {})) visitor.found(status);
}

}  // namespace resbm::stage_server
