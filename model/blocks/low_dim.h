// The low-dimensional path of a residual bottleneck: 3x3 convolutions over C/r channels, with attention after
// them if wanted.
//
//   kNormActConv    h = low_dim_conv<i>(SiLU(norm<i>(h)))                for i = 1 .. depth
//   kConvConvNorm   h = low_dim_conv<i>(h), SiLU between them; h = norm1(h) after the last
//
// With a width w > 1 the first convolution gives w * C/r channels and the last takes them back to C/r; norms are
// over the channels of what they read. Attention then gives, with 1x1 convolutions:
//
//   kSqueezeExcite  h * sigmoid(attention.fc2(SiLU(attention.fc1(mean of h over pixels)))); hidden max(1, C/r / 4)
//                   (Hu et al. 2018, "Squeeze-and-Excitation Networks", with SiLU for its ReLU: with the one or two
//                   hidden values that C/r leaves, a ReLU is often dead from the start)
//   kSelfAttention  h + attention.projection(softmax(q k^T / sqrt(C/r)) v) over pixels, q, k, v being
//                   attention.query, attention.key, attention.value of h
//
// All convolutions have biases.
#ifndef RESBM_MODEL_BLOCKS_LOW_DIM_H_
#define RESBM_MODEL_BLOCKS_LOW_DIM_H_

#include <functional>
#include <vector>

#include "model/blocks/operators.h"
#include "model/parameters/parameters.h"
#include "model/spec.h"
#include "model/torch/torch_headers.h"

namespace resbm::model {

// Kaiming's start for a convolution whose output has this gain.
using KaimingStart = std::function<Start(double gain)>;

class LowDimPath {
 public:
  // `channels`: C/r. norm_groups 0 = no norms.
  LowDimPath(ParameterList& parameters, const LowDim& spec, int channels, int norm_groups, const KaimingStart& start);

  // [N, C/r, H, W] -> the same.
  at::Tensor operator()(const at::Tensor& z) const;

 private:
  at::Tensor Attend(const at::Tensor& h) const;

  const LowDim spec_;
  const int channels_;
  std::vector<GroupNormalisation> norms_;
  std::vector<Convolution> convolutions_;
  // fc1, fc2; or query, key, value, projection.
  std::vector<Convolution> attention_;
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_BLOCKS_LOW_DIM_H_
