#include "model/optimizer/optimizer.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "model/optimizer/muon.h"

namespace resbm::model {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors ZerosLike(const Tensors& parameters) {
  c10::NoGradGuard no_grad;
  Tensors zeros;
  for (const at::Tensor& parameter : parameters) zeros.push_back(at::zeros_like(parameter));
  return zeros;
}

Tensors GradientsOf(const Tensors& parameters) {
  Tensors gradients;
  for (const at::Tensor& parameter : parameters) gradients.push_back(parameter.grad());
  return gradients;
}

std::uint64_t BytesOf(const Tensors& tensors) {
  std::uint64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

// torch.optim.SGD: g += weight_decay * p; b = momentum * b + (1 - dampening) * g, on the first step b = g;
// g = g + momentum * b with Nesterov, else b; p -= lr * g.
class Sgd : public Optimizer {
 public:
  Sgd(const SgdOptions& options, Tensors parameters) : options_(options), parameters_(std::move(parameters)) {
    if (options_.momentum != 0) momentum_ = ZerosLike(parameters_);
  }

  void Step(double learning_rate) override {
    if (parameters_.empty()) return;
    c10::NoGradGuard no_grad;
    Tensors gradients = GradientsOf(parameters_);
    if (options_.weight_decay != 0) at::_foreach_add_(gradients, parameters_, options_.weight_decay);
    if (options_.momentum != 0) {
      if (first_) {
        at::_foreach_copy_(momentum_, gradients);
      } else {
        at::_foreach_mul_(momentum_, options_.momentum);
        at::_foreach_add_(momentum_, gradients, 1 - options_.dampening);
      }
      first_ = false;
      if (options_.nesterov) at::_foreach_add_(gradients, momentum_, options_.momentum);
    }
    const bool plain_momentum = options_.momentum != 0 && !options_.nesterov;
    at::_foreach_add_(parameters_, plain_momentum ? momentum_ : gradients, -learning_rate);
  }

  void Reset() override {
    c10::NoGradGuard no_grad;
    if (!momentum_.empty()) at::_foreach_zero_(momentum_);
    first_ = true;
  }

  std::uint64_t bytes() const override { return BytesOf(momentum_); }

 private:
  const SgdOptions options_;
  const Tensors parameters_;
  Tensors momentum_;
  bool first_ = true;
};

// torch.optim.AdamW: p *= 1 - lr * weight_decay; m = lerp(m, g, 1 - beta1); v = beta2 * v + (1 - beta2) * g^2;
// p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon).
class AdamW : public Optimizer {
 public:
  AdamW(const AdamWOptions& options, Tensors parameters)
      : options_(options),
        parameters_(std::move(parameters)),
        first_moment_(ZerosLike(parameters_)),
        second_moment_(ZerosLike(parameters_)) {}

  void Step(double learning_rate) override {
    if (parameters_.empty()) return;
    c10::NoGradGuard no_grad;
    ++steps_;
    Tensors gradients = GradientsOf(parameters_);
    if (options_.weight_decay != 0) at::_foreach_mul_(parameters_, 1 - learning_rate * options_.weight_decay);
    at::_foreach_lerp_(first_moment_, gradients, 1 - options_.beta1);
    at::_foreach_mul_(second_moment_, options_.beta2);
    at::_foreach_addcmul_(second_moment_, gradients, gradients, 1 - options_.beta2);
    const double correction1 = 1 - std::pow(options_.beta1, steps_);
    const double correction2 = 1 - std::pow(options_.beta2, steps_);
    Tensors& denominators = gradients;
    at::_foreach_copy_(denominators, second_moment_);
    at::_foreach_sqrt_(denominators);
    at::_foreach_div_(denominators, std::sqrt(correction2));
    at::_foreach_add_(denominators, options_.epsilon);
    at::_foreach_addcdiv_(parameters_, first_moment_, denominators, -learning_rate / correction1);
  }

  void Reset() override {
    c10::NoGradGuard no_grad;
    if (!parameters_.empty()) {
      at::_foreach_zero_(first_moment_);
      at::_foreach_zero_(second_moment_);
    }
    steps_ = 0;
  }

  std::uint64_t bytes() const override { return BytesOf(first_moment_) + BytesOf(second_moment_); }

 private:
  const AdamWOptions options_;
  const Tensors parameters_;
  Tensors first_moment_;
  Tensors second_moment_;
  std::int64_t steps_ = 0;
};

class MuonOptimizer : public Optimizer {
 public:
  MuonOptimizer(const MuonOptions& options, Tensors matrices) : muon_(options, std::move(matrices)) {}
  void Step(double learning_rate) override { muon_.Step(learning_rate); }
  void Reset() override { muon_.Reset(); }
  std::uint64_t bytes() const override { return muon_.bytes(); }

 private:
  Muon muon_;
};

// One optimizer for each set of parameters that is trained alike.
class Groups : public Optimizer {
 public:
  void Add(double rate_ratio, std::unique_ptr<Optimizer> optimizer) {
    groups_.emplace_back(rate_ratio, std::move(optimizer));
  }

  void Step(double learning_rate) override {
    for (const auto& [ratio, optimizer] : groups_) optimizer->Step(learning_rate * ratio);
  }
  void Reset() override {
    for (const auto& [ratio, optimizer] : groups_) optimizer->Reset();
  }
  std::uint64_t bytes() const override {
    std::uint64_t bytes = 0;
    for (const auto& [ratio, optimizer] : groups_) bytes += optimizer->bytes();
    return bytes;
  }

 private:
  std::vector<std::pair<double, std::unique_ptr<Optimizer>>> groups_;
};

template <typename Options>
Options WithDecay(Options options, std::optional<double> weight_decay) {
  options.weight_decay = weight_decay.value_or(options.weight_decay);
  return options;
}

// Muon, AdamW or SGD, the ratio of rates and the decay: what makes parameters alike.
using Alike = std::tuple<bool, double, std::optional<double>>;

// Four partial sums, so that additions need not wait for each other; the order is fixed.
double SumOfSquares(const float* values, std::int64_t count) {
  double sums[4] = {0, 0, 0, 0};
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int lane = 0; lane < 4; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(values[i]) * values[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerOptions& options,
                                         const std::vector<OptimizedParameter>& parameters) {
  const auto* muon = std::get_if<MuonOptions>(&options);
  std::map<Alike, Tensors> groups;
  for (const OptimizedParameter& parameter : parameters) {
    const bool takes = muon != nullptr && parameter.muon;
    groups[{takes, parameter.rate_ratio, parameter.weight_decay}].push_back(parameter.tensor);
  }
  auto all = std::make_unique<Groups>();
  for (const auto& [alike, tensors] : groups) {
    const auto& [takes, ratio, decay] = alike;
    if (takes) {
      all->Add(ratio, std::make_unique<MuonOptimizer>(WithDecay(*muon, decay), tensors));
    } else if (muon != nullptr) {
      all->Add(ratio * muon->adamw_rate_ratio, std::make_unique<AdamW>(WithDecay(muon->adamw, decay), tensors));
    } else if (const auto* sgd = std::get_if<SgdOptions>(&options)) {
      all->Add(ratio, std::make_unique<Sgd>(WithDecay(*sgd, decay), tensors));
    } else {
      all->Add(ratio, std::make_unique<AdamW>(WithDecay(std::get<AdamWOptions>(options), decay), tensors));
    }
  }
  return all;
}

std::vector<double> SumsOfSquares(const Tensors& tensors) {
  c10::NoGradGuard no_grad;
  std::vector<double> sums;
  Tensors norms;  // on a GPU: one transfer for all
  for (const at::Tensor& tensor : tensors) {
    if (tensor.is_cpu() && tensor.is_non_overlapping_and_dense()) {
      sums.push_back(SumOfSquares(tensor.const_data_ptr<float>(), tensor.numel()));
    } else {
      norms.push_back(at::linalg_vector_norm(tensor, 2, at::OptionalIntArrayRef(), false, at::kDouble));
    }
  }
  if (norms.empty()) return sums;
  const at::Tensor host = at::stack(norms).cpu();
  for (std::int64_t i = 0; i < host.size(0); ++i) {
    const double norm = host.const_data_ptr<double>()[i];
    sums.push_back(norm * norm);
  }
  return sums;
}

}  // namespace resbm::model
