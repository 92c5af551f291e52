#include "stage_server/core/tenancy.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "proto/wire/fence.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::stage_server {
namespace {

constexpr std::size_t kMaxJobIdBytes = 256;
constexpr std::size_t kJobsRemembered = 256;
constexpr double kMaxLeaseSeconds = 7 * 24 * 3600;

bool GoodLease(double seconds) { return std::isfinite(seconds) && seconds > 0 && seconds <= kMaxLeaseSeconds; }

}  // namespace

absl::Status Tenancy::Check(const v1::Attach& attach) {
  if (attach.job_id().empty() || attach.job_id().size() > kMaxJobIdBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("Attach.job_id has ", attach.job_id().size(), " bytes, 1 to ", kMaxJobIdBytes, " are allowed"));
  }
  if (attach.stage() >= attach.stages()) {
    return absl::InvalidArgumentError(absl::StrCat("Attach.stage is ", attach.stage(), " of ", attach.stages()));
  }
  if (!GoodLease(attach.lease_seconds())) {
    return absl::InvalidArgumentError(absl::StrCat("Attach.lease_seconds is ", attach.lease_seconds(),
                                                   "; it must be above 0 and at most ", kMaxLeaseSeconds));
  }
  return absl::OkStatus();
}

std::optional<v1::Refused> Tenancy::Refuse(const v1::Fence& fence, const v1::Attach& attach) const {
  v1::Refused refused;
  *refused.mutable_holder_fence() = fence_;
  refused.set_holder_job_id(job_id_);
  if (wire::kProtocolVersion < attach.min_protocol_version() || wire::kProtocolVersion > attach.max_protocol_version()) {
    refused.set_min_protocol_version(wire::kProtocolVersion);
    refused.set_max_protocol_version(wire::kProtocolVersion);
    refused.set_reason(absl::StrCat("this stage server speaks protocol version ", wire::kProtocolVersion,
                                    ", the coordinator ", attach.min_protocol_version(), " to ",
                                    attach.max_protocol_version(), "; install the same release on both"));
    return refused;
  }
  if (!free() && attach.job_id() != job_id_) {
    refused.set_reason(absl::StrCat("the stage belongs to job ", job_id_, " (stage ", stage_, ", fence ",
                                    wire::FenceText(fence_), attached() ? ", attached" : ", its coordinator is gone",
                                    ") until that is released or its lease ends"));
    return refused;
  }
  const auto seen = obeyed_.find(attach.job_id());
  const v1::Fence newest = seen == obeyed_.end() ? v1::Fence() : seen->second;
  if (!wire::Newer(fence, newest)) {
    *refused.mutable_holder_fence() = newest;
    refused.set_holder_job_id(attach.job_id());
    refused.set_reason(absl::StrCat("fence ", wire::FenceText(fence), " is not newer than ", wire::FenceText(newest),
                                    ", which this stage has obeyed for job ", attach.job_id(),
                                    "; another coordinator of this run is or was here"));
    return refused;
  }
  return std::nullopt;
}

void Tenancy::Accept(SessionId session, const v1::Fence& fence, const v1::Attach& attach) {
  session_ = session;
  job_id_ = attach.job_id();
  fence_ = fence;
  stage_ = attach.stage();
  stages_ = attach.stages();
  lease_ = absl::Seconds(attach.lease_seconds());
  if (obeyed_.insert_or_assign(job_id_, fence).second) {
    obeyed_order_.push_back(job_id_);
    if (obeyed_order_.size() > kJobsRemembered) {
      obeyed_.erase(obeyed_order_.front());
      obeyed_order_.pop_front();
    }
  }
}

bool Tenancy::Speaks(SessionId session, const v1::Fence& fence) const {
  return attached() && session == session_ && wire::SameFence(fence, fence_);
}

void Tenancy::Lose(absl::Duration now) {
  session_ = 0;
  lease_end_ = now + lease_;
}

void Tenancy::Renew(double lease_seconds) {
  if (GoodLease(lease_seconds)) lease_ = absl::Seconds(lease_seconds);
}

void Tenancy::Free() {
  session_ = 0;
  job_id_.clear();
  fence_.Clear();
  stage_ = 0;
  stages_ = 0;
}

}  // namespace resbm::stage_server
