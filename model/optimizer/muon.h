// Muon exactly as torch.optim.Muon computes it: momentum, made nearly orthogonal by Newton and Schulz's iteration
// in bfloat16, whatever the device. State and working space are allocated beforehand.
#ifndef RESBM_MODEL_OPTIMIZER_MUON_H_
#define RESBM_MODEL_OPTIMIZER_MUON_H_

#include <cstdint>
#include <vector>

#include "model/spec.h"
#include "model/torch/torch_headers.h"

namespace resbm::model {

// Per parameter of two or more dimensions, taken as the matrix G [rows, columns] = [size(0), the rest]:
//   b = lerp(b, g, 1 - momentum); u = lerp(g, b, momentum) with Nesterov, else b
//   X = u / max(|u|, 1e-7) in bfloat16, transposed if rows > columns; ns_steps times:
//     A = X X^T; X = 3.4445 X + (-4.7750 A + 2.0315 A A) X
//   p *= 1 - lr * weight_decay; p -= lr * adjust(rows, columns) * X
// Coefficients: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks".
class Muon {
 public:
  // The momentum, zero, and working space for the largest matrix. Throws c10::Error.
  Muon(const MuonOptions& options, std::vector<at::Tensor> parameters);

  // One step with parameter.grad(), which is used as scratch memory. Allocates no tensors of its own; LibTorch's
  // bfloat16 product may hold its result in fp32 meanwhile: 4 bytes a value of one matrix at a time.
  void Step(double learning_rate);
  void Reset();
  // Momentum and working space: 4 bytes a value, and of the largest matrix alone 2 x 2 bytes a value and
  // 2 x 2 bytes a value of A, whose side is the shorter one.
  std::uint64_t bytes() const;

 private:
  // Writes the nearly orthogonal matrix of `update` over it.
  void Orthogonalise(at::Tensor& update);

  const MuonOptions options_;
  const std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> momentum_;
  at::Tensor x_, next_x_;      // bfloat16, flat, of the largest matrix
  at::Tensor gram_, squared_;  // bfloat16, flat
  at::Tensor norm_;            // bfloat16, a number
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_OPTIMIZER_MUON_H_
