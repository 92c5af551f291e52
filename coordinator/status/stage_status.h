// What one stage server said when it was asked, or why it did not.
#ifndef RESBM_COORDINATOR_STATUS_STAGE_STATUS_H_
#define RESBM_COORDINATOR_STATUS_STAGE_STATUS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

struct StageStatus {
  std::string address;
  // UNAVAILABLE, DEADLINE_EXCEEDED: no answer; UNIMPLEMENTED: something else than a stage server listens there.
  absl::Status error;
  v1::DescribeReply reply;  // when error is OK
};

// Asks all of them at once; returns when all have answered or the time is over. One that does not answer does not keep
// the others' answers back. In the order of `addresses`.
std::vector<StageStatus> DescribeStages(absl::Span<const std::string> addresses, absl::Duration timeout);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_STATUS_STAGE_STATUS_H_
