// Reduced precision by LibTorch's autocast: convolutions and matrix products compute in it, parameters, gradients
// of parameters and the optimizer stay fp32.
#ifndef RESBM_MODEL_TORCH_PRECISION_H_
#define RESBM_MODEL_TORCH_PRECISION_H_

#include "model/spec.h"
#include "model/torch/torch_headers.h"

namespace resbm::model {

// Autocast on this thread while it lives; nothing for kFp32. Its cache of cast weights stays off: within one
// forward pass each weight is used once, and across passes the cache would outlive a change of the weights.
class PrecisionScope {
 public:
  PrecisionScope(Precision precision, c10::DeviceType device);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  const bool active_;
  const c10::DeviceType device_;
  bool enabled_before_ = false;
  bool cache_before_ = true;
  at::ScalarType type_before_ = at::kBFloat16;
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_TORCH_PRECISION_H_
