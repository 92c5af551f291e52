// The two residual branches of a decoder block, apart: where a boundary stands inside them (kInBranch), one branch
// lives in its encoder or decoder. proto/resbm/v1/layer.proto gives structure and names.
//
// Starts: a matrix has the standard deviation 1 / sqrt(3 in_features), that of PyTorch's nn.Linear, which at width 768
// is GPT-2's 0.02. The matrices whose result is added to the residual stream have that over sqrt(2 b) in block b,
// counted from 1 (Zhang et al. 2019, "Improving Deep Transformer with Depth-Scaled Initialization and Merged
// Attention"; so does torchtitan): it needs the number of the block alone, not how many there are.
#ifndef RESBM_MODEL_BLOCKS_DECODER_BLOCK_H_
#define RESBM_MODEL_BLOCKS_DECODER_BLOCK_H_

#include <cstdint>

#include "model/blocks/dropout.h"
#include "model/parameters/parameters.h"
#include "model/blocks/pass.h"
#include "model/blocks/sequence_operators.h"
#include "model/spec.h"
#include "model/torch/torch_headers.h"

namespace resbm::model {

// How matrices of a block start; `block` is its number, the layer's global index (layer 0 is the embedding).
Start InnerStart(double gain = 1);
Start OutputStart(int block, double gain = 1);

// Where a branch stands.
struct BranchPlace {
  Origin origin;
  int block = 1;
  double gain = 1;  // times the starts
};

// dropout(attention.out(causal attention of norm1(x))), [N, T, width] -> the same.
class AttentionBranch {
 public:
  // `positions`: T.
  AttentionBranch(ParameterList& parameters, const DecoderBlock& spec, std::int64_t positions,
                  const BranchPlace& place);
  at::Tensor operator()(const at::Tensor& x, const Pass& pass) const;

 private:
  const int heads_;
  const RmsNormalisation norm_;
  const MatrixMap qkv_;
  const MatrixMap out_;
  const Dropout dropout_;
  const RotaryPositions rotary_;
};

// dropout(mlp.down(silu(mlp.gate(n)) * mlp.up(n))), n = norm2(x) (SwiGLU; Shazeer 2020). [N, T, width] ->
// [N, T, out_features].
class MlpBranch {
 public:
  MlpBranch(ParameterList& parameters, const DecoderBlock& spec, int out_features, const BranchPlace& place);
  at::Tensor operator()(const at::Tensor& x, const Pass& pass) const;

 private:
  const RmsNormalisation norm_;
  const MatrixMap gate_;
  const MatrixMap up_;
  const MatrixMap down_;
  const Dropout dropout_;
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_BLOCKS_DECODER_BLOCK_H_
