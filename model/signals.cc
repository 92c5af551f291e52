#include "model/signals.h"

#include <ATen/ops/linalg_eigvalsh.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>

#include <cmath>

namespace resbm::model {

double RootMeanSquare(const at::Tensor& tensor) {
  c10::NoGradGuard no_grad;
  if (tensor.numel() == 0) return 0;
  const at::Tensor norm =
      at::linalg_vector_norm(tensor.detach(), 2, at::OptionalIntArrayRef(), /*keepdim=*/false, at::kFloat);
  return norm.item<double>() / std::sqrt(static_cast<double>(tensor.numel()));
}

double EffectiveRank(const at::Tensor& z, int channels_at) {
  c10::NoGradGuard no_grad;
  if (z.numel() == 0) return 0;
  const std::int64_t channels = z.size(channels_at);
  const at::Tensor rows = z.detach().to(at::kFloat).movedim(channels_at, -1).reshape({-1, channels});
  const at::Tensor covariance = at::matmul(rows.t(), rows).to(at::kCPU, at::kDouble);
  if (!std::isfinite(covariance.sum().item<double>())) return 0;
  const at::Tensor eigenvalues = at::linalg_eigvalsh(covariance);
  const auto* values = eigenvalues.const_data_ptr<double>();
  double sum = 0;
  for (std::int64_t i = 0; i < channels; ++i) sum += values[i] > 0 ? values[i] : 0;
  if (sum <= 0) return 0;
  double entropy = 0;
  for (std::int64_t i = 0; i < channels; ++i) {
    const double share = values[i] > 0 ? values[i] / sum : 0;
    if (share > 0) entropy -= share * std::log(share);
  }
  return std::exp(entropy);
}

}  // namespace resbm::model
