// Training and evaluation programs: what each stage computes, in which order. Pure functions of the
// windows and the number of micro-batches M; nothing here knows time, links or LibTorch.
//
// P = 3, M = 5, ONE_F_ONE_B, windows 3 2 1 (protocol.md, section 6):
//   stage 0   F0 F1 F2 B0 F3 B1 F4 B2 B3 B4
//   stage 1   F0 F1 B0 F2 B1 F3 B2 F4 B3 B4
//   stage 2   F0 B0 F1 B1 F2 B2 F3 B3 F4 B4
// GPIPE is the same with windows of M: all forwards, then all backwards. Backward runs in ascending order
// in every schedule, so that gradient sums are bit-equal whatever the schedule.
#ifndef RESBM_COORDINATOR_PLAN_SCHEDULE_H_
#define RESBM_COORDINATOR_PLAN_SCHEDULE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

struct Action {
  enum class Kind { kForward, kBackward };
  Kind kind = Kind::kForward;
  int micro_batch = 0;  // from 0

  friend bool operator==(const Action&, const Action&) = default;
};

// Of one stage, in order.
using Program = std::vector<Action>;

// "F0 F1 B0 B1"
std::string ToString(const Action& action);
std::string ToString(const Program& program);

// The window of each stage: how many micro-batches it may have forwarded and not yet taken backward.
// `windows` empty: P-s for ONE_F_ONE_B, M for GPIPE. Otherwise one per stage. All are clipped to M and
// made non-increasing downstream, because a stage that must forward more than its upstream neighbour may
// have in flight waits for ever. INVALID_ARGUMENT: stages or micro_batches < 1, another number of
// windows than stages, a window < 1.
absl::StatusOr<std::vector<int>> ResolveWindows(v1::Schedule::Kind kind, int stages, int micro_batches,
                                                absl::Span<const int> windows);

// One program per window. Stage s forwards windows[s] micro-batches, then takes one backward and forwards
// one in turn, then takes the rest backward. Windows are used as given (CheckPrograms finds those that
// hang), but for those below 1 or above M, which count as 1 and M.
std::vector<Program> TrainingPrograms(int micro_batches, absl::Span<const int> windows);

// Forwards only, ascending, the same on each stage.
std::vector<Program> EvaluationPrograms(int stages, int micro_batches);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_PLAN_SCHEDULE_H_
