// Whether a stage can be given work, or gets on with what it has: what the health service "ready" and the metric
// resbm_stage_ready say. Not whether the process lives: nothing here is mended by killing it.
#ifndef RESBM_STAGE_SERVER_HOST_READINESS_H_
#define RESBM_STAGE_SERVER_HOST_READINESS_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::stage_server {

// A link that is down for so long while its tensor is waited for is no hiccup. Keepalive has noticed a dead one after
// 40 s at the latest.
inline constexpr absl::Duration kReadyPatience = absl::Seconds(10);

// `now`: as Stage::Describe gives it. `attached`: a coordinator's control stream is open. OK: a free stage, or one that
// its coordinator can count on. FAILED_PRECONDITION: it has failed, and waits for a newer fence or its release.
// UNAVAILABLE: its coordinator is gone and nobody else may have it yet; or it waits for a tensor of a link that is
// down.
absl::Status Readiness(const v1::DescribeReply& now, bool attached);

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_HOST_READINESS_H_
