// The loss of a micro-batch: cross-entropy in fp32, summed.
#ifndef RESBM_MODEL_LOSS_H_
#define RESBM_MODEL_LOSS_H_

#include <cstdint>

#include "model/torch/torch_headers.h"

namespace resbm::model {

// A label that takes no part in loss, weight and metrics.
inline constexpr std::int64_t kMaskedLabel = -1;

struct LossOfMicroBatch {
  at::Tensor sum;      // with its graph, if logits have one
  double weight = 0;   // labels that are not masked
  double correct = 0;  // of these, those that the largest logit names
};

// logits [..., classes], labels [...] int64. Nothing but masked labels gives 0, not NaN. Throws c10::Error.
LossOfMicroBatch CrossEntropy(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace resbm::model

#endif  // RESBM_MODEL_LOSS_H_
