// Convolution, group normalisation and the linear map as modules: parameters and the operator that uses them.
#ifndef RESBM_MODEL_BLOCKS_OPERATORS_H_
#define RESBM_MODEL_BLOCKS_OPERATORS_H_

#include <optional>
#include <string>
#include <variant>

#include "model/parameters/parameters.h"
#include "model/blocks/pass.h"
#include "model/torch/torch_headers.h"

namespace resbm::model {

// Gains of Kaiming's initialisation (He et al. 2015): before a ReLU or SiLU, and where no activation follows.
inline constexpr double kActivationGain = 1.4142135623730951;
inline constexpr double kLinearGain = 1.0;

// Square kernel, padding kernel / 2, no dilation, no groups. [N, in, H, W] -> [N, out, H', W'].
class Convolution {
 public:
  struct Options {
    int in_channels = 0;
    int out_channels = 0;
    int kernel = 1;
    int stride = 1;
    bool bias = false;
    double gain = kActivationGain;
    // Other than Kaiming's fan_out with `gain`.
    std::optional<Start> start = std::nullopt;
  };
  Convolution() = default;
  // Adds name.weight and, with a bias, name.bias.
  Convolution(ParameterList& parameters, const std::string& name, const Options& options);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  int stride_ = 1;
  int padding_ = 0;
};

// GroupNorm over `channels`, epsilon 1e-5. With 0 groups there is nothing: no parameters, the identity.
class GroupNormalisation {
 public:
  GroupNormalisation() = default;
  GroupNormalisation(ParameterList& parameters, const std::string& name, int groups, int channels);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  int groups_ = 0;
};

// torch.nn.BatchNorm2d: momentum 0.1, epsilon 1e-5. In training it normalises by the micro-batch's own statistics and
// moves the running ones; those of the last applied step normalise in evaluation. Names weight, bias, running_mean,
// running_var.
class BatchNormalisation {
 public:
  BatchNormalisation(ParameterList& parameters, const std::string& name, int channels);
  at::Tensor operator()(const at::Tensor& x, const Pass& pass) const;

 private:
  const at::Tensor weight_;
  const at::Tensor bias_;
  const StagedBuffer mean_;
  const StagedBuffer variance_;
};

// Either of them.
class Normalisation {
 public:
  Normalisation(ParameterList& parameters, const std::string& name, int groups, int channels, bool batch);
  at::Tensor operator()(const at::Tensor& x, const Pass& pass) const;

 private:
  std::variant<GroupNormalisation, BatchNormalisation> norm_;
};

// x W^T + b: [N, in] -> [N, out]. Names "weight" and "bias".
class LinearMap {
 public:
  LinearMap(ParameterList& parameters, int in_features, int out_features, double gain);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_BLOCKS_OPERATORS_H_
