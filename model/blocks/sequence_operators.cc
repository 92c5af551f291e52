#include "model/blocks/sequence_operators.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rms_norm.h>

#include <vector>

namespace resbm::model {

MatrixMap::MatrixMap(ParameterList& parameters, const std::string& name, int in_features, int out_features, Start start)
    : weight_(parameters.Add(name + ".weight", {out_features, in_features}, start)) {}

at::Tensor MatrixMap::operator()(const at::Tensor& x) const { return at::linear(x, weight_); }

RmsNormalisation::RmsNormalisation(ParameterList& parameters, const std::string& name, int width, double epsilon)
    : weight_(parameters.Add(name + ".weight", {width}, Start::One())), epsilon_(epsilon) {}

at::Tensor RmsNormalisation::operator()(const at::Tensor& x) const {
  return at::rms_norm(x.to(at::kFloat), weight_.sizes(), weight_, epsilon_);
}

RotaryPositions::RotaryPositions(std::int64_t positions, int size, double base, c10::Device device) {
  c10::NoGradGuard no_grad;
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor exponents = at::arange(0, size, 2, options).div_(-size);
  const at::Tensor angles = at::outer(at::arange(positions, options), at::pow(base, exponents));
  cosines_ = angles.cos().to(at::kFloat).to(device);
  sines_ = angles.sin().to(at::kFloat).to(device);
}

at::Tensor RotaryPositions::operator()(const at::Tensor& x) const {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()) - 1, 1);  // [positions, 1, ..., size / 2]
  shape.front() = x.size(1);
  shape.back() = cosines_.size(1);
  const at::Tensor cosines = cosines_.view(shape);
  const at::Tensor sines = sines_.view(shape);
  const at::Tensor first = x.narrow(-1, 0, cosines_.size(1));
  const at::Tensor second = x.narrow(-1, cosines_.size(1), cosines_.size(1));
  return at::cat({first.mul(cosines).sub(second.mul(sines)), second.mul(cosines).add(first.mul(sines))}, -1);
}

}  // namespace resbm::model
