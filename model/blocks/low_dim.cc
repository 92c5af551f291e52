#include "model/blocks/low_dim.h"

#include <ATen/ops/matmul.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace resbm::model {

LowDimPath::LowDimPath(ParameterList& parameters, const LowDim& spec, int channels, int norm_groups,
                       const KaimingStart& start)
    : spec_(spec), channels_(channels) {
  const int wide = spec.width * channels;
  const bool norm_first = spec.order == LowDimOrder::kNormActConv;
  for (int i = 1; i <= spec.depth; ++i) {
    const int in = i == 1 ? channels : wide;
    const int out = i == spec.depth ? channels : wide;
    if (norm_first) norms_.emplace_back(parameters, "norm" + std::to_string(i), norm_groups, in);
    convolutions_.emplace_back(parameters, "low_dim_conv" + std::to_string(i),
                               Convolution::Options{.in_channels = in,
                                                    .out_channels = out,
                                                    .kernel = 3,
                                                    .bias = true,
                                                    .start = start(i == spec.depth ? kLinearGain : kActivationGain)});
  }
  if (!norm_first) norms_.emplace_back(parameters, "norm1", norm_groups, channels);

  const auto attend = [&](const std::string& name, int in, int out, double gain) {
    attention_.emplace_back(
        parameters, "attention." + name,
        Convolution::Options{.in_channels = in, .out_channels = out, .bias = true, .start = start(gain)});
  };
  switch (spec.attention) {
    case LowDimAttention::kNone: break;
    case LowDimAttention::kSqueezeExcite: {
      const int hidden = std::max(1, channels / 4);
      attend("fc1", channels, hidden, kActivationGain);
      attend("fc2", hidden, channels, kLinearGain);
      break;
    }
    case LowDimAttention::kSelfAttention:
      for (const char* name : {"query", "key", "value", "projection"}) attend(name, channels, channels, kLinearGain);
      break;
  }
}

at::Tensor LowDimPath::operator()(const at::Tensor& z) const {
  at::Tensor h = z;
  const bool norm_first = spec_.order == LowDimOrder::kNormActConv;
  for (std::size_t i = 0; i < convolutions_.size(); ++i) {
    if (norm_first) {
      h = at::silu(norms_[i](h));
    } else if (i > 0) {
      h = at::silu(h);
    }
    h = convolutions_[i](h);
  }
  if (!norm_first) h = norms_[0](h);
  return Attend(h);
}

at::Tensor LowDimPath::Attend(const at::Tensor& h) const {
  switch (spec_.attention) {
    case LowDimAttention::kNone: return h;
    case LowDimAttention::kSqueezeExcite: {
      const at::Tensor means = h.mean({2, 3}, /*keepdim=*/true);
      return h.mul(at::sigmoid(attention_[1](at::silu(attention_[0](means)))));
    }
    case LowDimAttention::kSelfAttention: break;
  }
  const auto pixels = [&](std::size_t i) { return attention_[i](h).flatten(2); };  // [N, C/r, pixels]
  const at::Tensor scores = at::matmul(pixels(0).transpose(1, 2), pixels(1)).mul(1 / std::sqrt(double(channels_)));
  // [N, C/r, queries]: for each query the values, weighed by its row of the scores.
  const at::Tensor read = at::matmul(pixels(2), at::softmax(scores, 2).transpose(1, 2));
  return h.add(attention_[3](read.reshape(h.sizes())));
}

}  // namespace resbm::model
