#include "model/optimizer/muon.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace resbm::model {
namespace {

constexpr double kA = 3.4445;
constexpr double kB = -4.7750;
constexpr double kC = 2.0315;
constexpr double kSmallestNorm = 1e-7;

struct Extent {
  std::int64_t rows;
  std::int64_t columns;
};

Extent ExtentOf(const at::Tensor& tensor) { return {tensor.size(0), tensor.numel() / tensor.size(0)}; }

double Adjustment(MuonOptions::Adjust adjust, const Extent& extent) {
  const double rows = static_cast<double>(extent.rows);
  const double columns = static_cast<double>(extent.columns);
  if (adjust == MuonOptions::Adjust::kMatchRmsAdamW) return 0.2 * std::sqrt(std::max(rows, columns));
  return std::sqrt(std::max(1.0, rows / columns));
}

}  // namespace

Muon::Muon(const MuonOptions& options, std::vector<at::Tensor> parameters)
    : options_(options), parameters_(std::move(parameters)) {
  if (parameters_.empty()) return;
  c10::NoGradGuard no_grad;
  std::int64_t most_values = 0;
  std::int64_t longest_short_side = 0;
  for (const at::Tensor& parameter : parameters_) {
    momentum_.push_back(at::zeros_like(parameter));
    const Extent extent = ExtentOf(parameter);
    most_values = std::max(most_values, parameter.numel());
    longest_short_side = std::max(longest_short_side, std::min(extent.rows, extent.columns));
  }
  const auto bf16 = parameters_.front().options().dtype(at::kBFloat16).requires_grad(false);
  x_ = at::empty({most_values}, bf16);
  next_x_ = at::empty({most_values}, bf16);
  gram_ = at::empty({longest_short_side * longest_short_side}, bf16);
  squared_ = at::empty({longest_short_side * longest_short_side}, bf16);
  norm_ = at::empty({}, bf16);
}

void Muon::Step(double learning_rate) {
  c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor parameter = parameters_[i];
    at::Tensor gradient = parameter.grad();
    momentum_[i].lerp_(gradient, 1 - options_.momentum);
    if (options_.nesterov) {
      gradient.lerp_(momentum_[i], options_.momentum);
    } else {
      gradient.copy_(momentum_[i]);
    }
    Orthogonalise(gradient);
    parameter.mul_(1 - learning_rate * options_.weight_decay);
    parameter.add_(gradient, -learning_rate * Adjustment(options_.adjust, ExtentOf(parameter)));
  }
}

void Muon::Orthogonalise(at::Tensor& update) {
  const Extent extent = ExtentOf(update);
  const bool tall = extent.rows > extent.columns;
  const std::int64_t side = std::min(extent.rows, extent.columns);
  const auto flat = [](const at::Tensor& space, std::int64_t values) { return space.narrow(0, 0, values); };
  // Row-major whatever the layout of `update`. A tall matrix is first a transposed view, as in PyTorch, whose
  // kernels give other bits for other strides.
  flat(x_, update.numel()).view(update.sizes()).copy_(update);
  at::Tensor x = flat(x_, update.numel()).view({extent.rows, extent.columns});
  if (tall) x = x.t();
  at::Tensor next_x = flat(next_x_, update.numel()).view({side, update.numel() / side});
  at::Tensor gram = flat(gram_, side * side).view({side, side});
  at::Tensor squared = flat(squared_, side * side).view({side, side});
  at::linalg_vector_norm_out(norm_, x, 2);
  x.div_(norm_.clamp_min_(kSmallestNorm));
  at::Tensor free = flat(x_, update.numel()).view(next_x.sizes());
  for (int step = 0; step < options_.ns_steps; ++step) {
    at::mm_out(gram, x, x.t());
    at::addmm_out(squared, gram, gram, gram, kB, kC);
    at::addmm_out(next_x, x, squared, x, kA, 1);
    x = next_x;
    std::swap(next_x, free);
  }
  if (tall) x = x.t();
  update.copy_(x.view(update.sizes()));
}

void Muon::Reset() {
  c10::NoGradGuard no_grad;
  for (at::Tensor& momentum : momentum_) momentum.zero_();
}

std::uint64_t Muon::bytes() const {
  if (parameters_.empty()) return 0;
  std::uint64_t bytes = x_.nbytes() + next_x_.nbytes() + gram_.nbytes() + squared_.nbytes();
  for (const at::Tensor& momentum : momentum_) bytes += momentum.nbytes();
  return bytes;
}

}  // namespace resbm::model
