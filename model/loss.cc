#include "model/loss.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>

namespace resbm::model {

LossOfMicroBatch CrossEntropy(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor scores = logits.to(at::kFloat).flatten(0, -2);
  const at::Tensor wanted = labels.flatten();
  LossOfMicroBatch loss;
  loss.sum = at::cross_entropy_loss(scores, wanted, {}, at::Reduction::Sum, /*ignore_index=*/kMaskedLabel);
  loss.weight = wanted.ne(kMaskedLabel).sum().item<double>();
  loss.correct = scores.detach().argmax(1).eq(wanted).sum().item<double>();
  return loss;
}

}  // namespace resbm::model
