#include "model/blocks/operators.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/linear.h>

namespace resbm::model {

Convolution::Convolution(ParameterList& parameters, const std::string& name, const Options& options)
    : weight_(parameters.Add(name + ".weight",
                             {options.out_channels, options.in_channels, options.kernel, options.kernel},
                             options.start.value_or(Start::Kaiming(options.gain)))),
      stride_(options.stride),
      padding_(options.kernel / 2) {
  if (options.bias) bias_ = parameters.Add(name + ".bias", {options.out_channels}, Start::Zero());
}

at::Tensor Convolution::operator()(const at::Tensor& x) const {
  return at::conv2d(x, weight_, bias_.defined() ? std::optional<at::Tensor>(bias_) : std::nullopt, stride_, padding_);
}

GroupNormalisation::GroupNormalisation(ParameterList& parameters, const std::string& name, int groups, int channels)
    : groups_(groups) {
  if (groups == 0) return;
  weight_ = parameters.Add(name + ".weight", {channels}, Start::One());
  bias_ = parameters.Add(name + ".bias", {channels}, Start::Zero());
}

at::Tensor GroupNormalisation::operator()(const at::Tensor& x) const {
  if (groups_ == 0) return x;
  return at::group_norm(x, groups_, weight_, bias_);
}

BatchNormalisation::BatchNormalisation(ParameterList& parameters, const std::string& name, int channels)
    : weight_(parameters.Add(name + ".weight", {channels}, Start::One())),
      bias_(parameters.Add(name + ".bias", {channels}, Start::Zero())),
      mean_(parameters.AddStagedBuffer(name + ".running_mean", {channels}, Start::Zero())),
      variance_(parameters.AddStagedBuffer(name + ".running_var", {channels}, Start::One())) {}

at::Tensor BatchNormalisation::operator()(const at::Tensor& x, const Pass& pass) const {
  constexpr double kMomentum = 0.1;
  constexpr double kEpsilon = 1e-5;
  // Running statistics that are not given are not moved: a forward pass once more counts once.
  std::optional<at::Tensor> mean, variance;
  if (!pass.training) {
    mean = mean_.committed;
    variance = variance_.committed;
  } else if (!pass.again && x.numel() > x.size(1)) {
    // One value has no variance: dividing by n - 1 would leave NaN in the buffer, and in every evaluation after it.
    mean = mean_.staged;
    variance = variance_.staged;
  }
  return at::batch_norm(x, weight_, bias_, mean, variance, pass.training, kMomentum, kEpsilon, /*cudnn_enabled=*/true);
}

Normalisation::Normalisation(ParameterList& parameters, const std::string& name, int groups, int channels, bool batch)
    : norm_(batch ? decltype(norm_)(std::in_place_type<BatchNormalisation>, parameters, name, channels)
                  : decltype(norm_)(std::in_place_type<GroupNormalisation>, parameters, name, groups, channels)) {}

at::Tensor Normalisation::operator()(const at::Tensor& x, const Pass& pass) const {
  if (const auto* group = std::get_if<GroupNormalisation>(&norm_)) return (*group)(x);
  return std::get<BatchNormalisation>(norm_)(x, pass);
}

LinearMap::LinearMap(ParameterList& parameters, int in_features, int out_features, double gain)
    : weight_(parameters.Add("weight", {out_features, in_features}, Start::Kaiming(gain))),
      bias_(parameters.Add("bias", {out_features}, Start::Zero())) {}

at::Tensor LinearMap::operator()(const at::Tensor& x) const { return at::linear(x, weight_, bias_); }

}  // namespace resbm::model
