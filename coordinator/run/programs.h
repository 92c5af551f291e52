// The programs of coordinator/plan/schedule.h as the stages are told them.
#ifndef RESBM_COORDINATOR_RUN_PROGRAMS_H_
#define RESBM_COORDINATOR_RUN_PROGRAMS_H_

#include <vector>

#include "absl/types/span.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// One per stage, without program_id. `windows`: of the stages.
std::vector<v1::DefineProgram> TrainingProgramMessages(int micro_batches, absl::Span<const int> windows);

// Forwards only. A stage holds at most two micro-batches: that hides the transfer of one behind the
// computation of the other.
std::vector<v1::DefineProgram> EvaluationProgramMessages(int stages, int micro_batches);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_PROGRAMS_H_
