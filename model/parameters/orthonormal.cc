#include "model/parameters/orthonormal.h"

#include <ATen/ops/linalg_qr.h>

namespace resbm::model {

void RetractOrthonormal(const at::Tensor& matrix) {
  c10::NoGradGuard no_grad;
  const bool tall = matrix.size(0) > matrix.size(1);
  const at::Tensor moved = matrix.detach().to(at::kDouble);
  const auto [q, r] = at::linalg_qr(tall ? moved : moved.t());
  // The signs are the decomposition's to choose. One of a diagonal value 0 does not matter, but must not be 0.
  const at::Tensor signs = r.diagonal().ge(0).to(at::kDouble).mul_(2).sub_(1);
  const at::Tensor columns = q.mul(signs);
  at::Tensor(matrix).detach().copy_(tall ? columns : columns.t());
}

}  // namespace resbm::model
