#include "model/blocks/decoder_block.h"

#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>

#include <algorithm>
#include <cmath>

namespace resbm::model {
namespace {

constexpr double kInnerGain = 0.5773502691896258;  // 1 / sqrt(3)

}  // namespace

Start InnerStart(double gain) { return Start::KaimingFanIn(gain * kInnerGain); }

Start OutputStart(int block, double gain) { return InnerStart(gain / std::sqrt(2.0 * std::max(1, block))); }

AttentionBranch::AttentionBranch(ParameterList& parameters, const DecoderBlock& spec, std::int64_t positions,
                                 const BranchPlace& place)
    : heads_(spec.heads),
      norm_(parameters, "norm1", spec.width, spec.norm_epsilon),
      qkv_(parameters, "attention.qkv", spec.width, 3 * spec.width, InnerStart(place.gain)),
      out_(parameters, "attention.out", spec.width, spec.width, OutputStart(place.block, place.gain)),
      dropout_(spec.dropout, place.origin, "attention"),
      rotary_(positions, spec.width / spec.heads, spec.rotary_base, parameters.device()) {}

at::Tensor AttentionBranch::operator()(const at::Tensor& x, const Pass& pass) const {
  const std::int64_t samples = x.size(0);
  const std::int64_t positions = x.size(1);
  const std::int64_t width = x.size(2);
  // [N, T, which, head, coordinate]
  const at::Tensor qkv = qkv_(norm_(x)).view({samples, positions, 3, heads_, width / heads_});
  const at::Tensor turned = rotary_(qkv.narrow(2, 0, 2));
  const at::Tensor queries = turned.select(2, 0).transpose(1, 2);  // [N, head, T, coordinate]
  const at::Tensor keys = turned.select(2, 1).transpose(1, 2);
  const at::Tensor values = qkv.select(2, 2).transpose(1, 2);
  const at::Tensor read =
      at::scaled_dot_product_attention(queries, keys, values, {}, /*dropout_p=*/0, /*is_causal=*/true);
  return dropout_(out_(read.transpose(1, 2).reshape({samples, positions, width})), pass);
}

MlpBranch::MlpBranch(ParameterList& parameters, const DecoderBlock& spec, int out_features, const BranchPlace& place)
    : norm_(parameters, "norm2", spec.width, spec.norm_epsilon),
      gate_(parameters, "mlp.gate", spec.width, spec.hidden, InnerStart(place.gain)),
      up_(parameters, "mlp.up", spec.width, spec.hidden, InnerStart(place.gain)),
      down_(parameters, "mlp.down", spec.hidden, out_features, OutputStart(place.block, place.gain)),
      dropout_(spec.dropout, place.origin, "mlp") {}

at::Tensor MlpBranch::operator()(const at::Tensor& x, const Pass& pass) const {
  const at::Tensor n = norm_(x);
  return dropout_(down_(at::silu(gate_(n)).mul(up_(n))), pass);
}

}  // namespace resbm::model
