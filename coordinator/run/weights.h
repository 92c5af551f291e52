// The model's weights as one safetensors file, made of the stages' shards and taken apart again.
#ifndef RESBM_COORDINATOR_RUN_WEIGHTS_H_
#define RESBM_COORDINATOR_RUN_WEIGHTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// One file with every tensor of the shards, in their order. DATA_LOSS: a shard cannot be read, or two have
// one name (names the stage).
absl::StatusOr<std::string> MergeShards(absl::Span<const std::string> shards);

// What each stage needs of `weights`: its layers and the boundaries it takes part in. INVALID_ARGUMENT: not
// a safetensors file, or a tensor that belongs to no layer (the file is of another model); with `left_out` the
// names of such tensors go there instead.
absl::StatusOr<std::vector<std::string>> SplitWeights(std::string_view weights, absl::Span<const v1::StageSpec> stages,
                                                      std::vector<std::string>* left_out = nullptr);

// Prefix of a boundary's parameters: "boundaries.<cut point, dots as _>.".
std::string BoundaryPrefix(std::string_view cut_point);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_WEIGHTS_H_
