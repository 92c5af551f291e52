// The headers of what crosses this stage's links: what it must expect, what it sends.
#ifndef RESBM_STAGE_SERVER_CORE_TENSOR_PLAN_H_
#define RESBM_STAGE_SERVER_CORE_TENSOR_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/encoded_tensor.h"
#include "proto/resbm/v1/link.pb.h"
#include "stage_server/core/stage_links.h"
#include "stage_server/core/stage_shape.h"

namespace resbm::stage_server {

// A step or an evaluation.
struct WorkId {
  bool evaluation = false;
  std::uint64_t number = 0;
};

// How many tensors come in at `end` for one micro-batch.
std::uint32_t ExpectedCount(const StageShape& shape, End end);

// What comes in at `end` for one micro-batch: INPUT or ACTIVATION from up, TARGET (last stage) or GRADIENT
// from down. Kind, work, micro-batch, tensor index and count, dtype, codec, dims and payload bytes are set.
// INVALID_ARGUMENT: samples below 0, or a payload above max_tensor_bytes.
absl::StatusOr<std::vector<v1::TensorHeader>> ExpectedTensors(const StageShape& shape, End end, WorkId id,
                                                              std::uint32_t micro_batch, std::int64_t samples,
                                                              std::uint64_t max_tensor_bytes);

// What goes out at `end`: GRADIENT up, ACTIVATION down. As ExpectedTensors.
absl::StatusOr<std::vector<v1::TensorHeader>> OutgoingTensors(const StageShape& shape, End end, WorkId id,
                                                              std::uint32_t micro_batch, std::int64_t samples,
                                                              std::uint64_t max_tensor_bytes);

// INTERNAL: the computed tensor is not the one announced (names both shapes).
absl::Status CheckOutgoing(const v1::TensorHeader& announced, const EncodedTensor& tensor);

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_CORE_TENSOR_PLAN_H_
