// The layers of a decoder-only transformer, and what they cost. A part of model_plan.
#ifndef RESBM_COORDINATOR_PLAN_MODEL_PLAN_TRANSFORMER_H_
#define RESBM_COORDINATOR_PLAN_MODEL_PLAN_TRANSFORMER_H_

#include <cstdint>
#include <vector>

#include "coordinator/job/field_errors.h"
#include "coordinator/plan/model_plan_layers.h"
#include "proto/resbm/v1/job.pb.h"
#include "proto/resbm/v1/layer.pb.h"

namespace resbm::coordinator {

// "embedding", "block<i>", "head". Complete only if it adds no errors. The halves of a block that an IN_BRANCH
// boundary takes over are not in the block's own parameters and FLOPs.
std::vector<v1::LayerSpec> TransformerLayers(const v1::Transformer& transformer, const BoundaryChanges& changes,
                                             FieldErrors& errors);

// Trainable values, and FLOPs of one sample's forward pass. Linear maps have no bias; attention counts every pair of
// positions, also those that the mask hides.
struct SequenceCost {
  std::uint64_t parameters = 0;
  std::uint64_t flops = 0;

  void AddLinear(std::uint64_t tokens, std::uint64_t in, std::uint64_t out) {
    parameters += in * out;
    flops += 2 * tokens * in * out;
  }
  void AddRmsNorm(std::uint64_t width) { parameters += width; }
  // norm1, attention.qkv, attention.out.
  void AddAttention(std::uint64_t tokens, const v1::DecoderBlock& block);
  // norm2, mlp.gate, mlp.up, mlp.down; the last has `out` outputs.
  void AddMlp(std::uint64_t tokens, const v1::DecoderBlock& block, std::uint64_t out);
};

// Parameters and FLOPs of a boundary of kind LINEAR, IN_BRANCH or ADAPTER on a sequence, whose other fields are set.
// Its parts are those that model/boundaries/sequence_boundary.h names.
void SetSequenceBoundaryCosts(v1::BoundarySpec* spec);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_PLAN_MODEL_PLAN_TRANSFORMER_H_
