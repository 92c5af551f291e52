// Whose the stage is: job, fence, control session, lease.
//
//   free --Accept--> attached --Lose--> orphaned --lease over, Release--> free
//            ^-----------Accept (newer fence)--|
#ifndef RESBM_STAGE_SERVER_CORE_TENANCY_H_
#define RESBM_STAGE_SERVER_CORE_TENANCY_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/resbm/v1/control.pb.h"
#include "proto/resbm/v1/link.pb.h"

namespace resbm::stage_server {

// One control stream. 0 = none.
using SessionId = std::uint64_t;

class Tenancy {
 public:
  // INVALID_ARGUMENT: an Attach that cannot be understood (job, stage, lease; says which).
  static absl::Status Check(const v1::Attach& attach);
  // Why it may not attach, or nullopt: versions that do not meet, another job's stage, a fence that is not
  // strictly newer than any this job had in this process's life (also before a Release).
  std::optional<v1::Refused> Refuse(const v1::Fence& fence, const v1::Attach& attach) const;
  void Accept(SessionId session, const v1::Fence& fence, const v1::Attach& attach);

  // The session is the present one and so is the fence.
  bool Speaks(SessionId session, const v1::Fence& fence) const;
  // The stream ended; the lease runs from `now`.
  void Lose(absl::Duration now);
  void Renew(double lease_seconds);
  bool LeaseOver(absl::Duration now) const { return !free() && !attached() && now >= lease_end_; }
  void Free();

  bool free() const { return job_id_.empty(); }
  bool attached() const { return session_ != 0; }
  SessionId session() const { return session_; }
  const std::string& job_id() const { return job_id_; }
  // (0, 0) when free.
  const v1::Fence& fence() const { return fence_; }
  std::uint32_t stage() const { return stage_; }
  std::uint32_t stages() const { return stages_; }

 private:
  SessionId session_ = 0;
  std::string job_id_;
  v1::Fence fence_;
  std::uint32_t stage_ = 0;
  std::uint32_t stages_ = 0;
  absl::Duration lease_ = absl::ZeroDuration();
  absl::Duration lease_end_ = absl::ZeroDuration();
  // The newest fence of each of the last jobs: a fence never falls within a life.
  std::map<std::string, v1::Fence> obeyed_;
  std::deque<std::string> obeyed_order_;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_CORE_TENANCY_H_
