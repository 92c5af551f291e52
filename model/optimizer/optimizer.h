// SGD, AdamW and Muon exactly as torch.optim computes them, with everything allocated beforehand: a step allocates
// no tensors (Muon: see muon.h for what its products hold), so it does not run out of memory after the stage has
// promised to apply it.
#ifndef RESBM_MODEL_OPTIMIZER_OPTIMIZER_H_
#define RESBM_MODEL_OPTIMIZER_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "model/spec.h"
#include "model/torch/torch_headers.h"

namespace resbm::model {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // One step with parameter.grad(). The gradients are used as scratch memory: zero them afterwards.
  virtual void Step(double learning_rate) = 0;
  // Forgets all steps.
  virtual void Reset() = 0;
  virtual std::uint64_t bytes() const = 0;
};

struct OptimizedParameter {
  at::Tensor tensor;
  // With MuonOptions: Muon's, not AdamW's.
  bool muon = false;
  // Its rate is the step's times this.
  double rate_ratio = 1;
  // Other than the options'.
  std::optional<double> weight_decay;
};

// The state is allocated here, zero. Throws c10::Error.
std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerOptions& options,
                                         const std::vector<OptimizedParameter>& parameters);

// Sum of the squares of a tensor's values in double, without a copy in double. One number per tensor, in order.
std::vector<double> SumsOfSquares(const std::vector<at::Tensor>& tensors);

}  // namespace resbm::model

#endif  // RESBM_MODEL_OPTIMIZER_OPTIMIZER_H_
