// What the links of a stage may hold in memory during a step: known when Begin says the sizes of its micro-batches.
#ifndef RESBM_STAGE_SERVER_CORE_BUFFER_PLAN_H_
#define RESBM_STAGE_SERVER_CORE_BUFFER_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "stage_server/core/stage_shape.h"

namespace resbm::stage_server {

// Payload bytes, at most.
struct BufferPlan {
  // Arrived and not used yet: a window of activations and gradients; of what the coordinator sends this step and the
  // prefetched part of the next.
  std::uint64_t inbox_bytes = 0;
  // Sent and kept, should a link break: a window of activations, and the gradients of all micro-batches.
  std::uint64_t retained_bytes = 0;

  std::uint64_t total() const { return inbox_bytes + retained_bytes; }
};

// `samples`: of each micro-batch of the step; `next`: of those whose inputs and targets may come early. Errors are
// those of ExpectedTensors.
absl::StatusOr<BufferPlan> PlanBuffers(const StageShape& shape, const std::vector<std::int64_t>& samples,
                                       const std::vector<std::int64_t>& next, std::uint64_t max_tensor_bytes);

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_CORE_BUFFER_PLAN_H_
