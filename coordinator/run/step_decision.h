// What is decided about a step that every stage has computed: apply or skip, and by what its gradient sums
// are multiplied. Pure.
#ifndef RESBM_COORDINATOR_RUN_STEP_DECISION_H_
#define RESBM_COORDINATOR_RUN_STEP_DECISION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

struct StepDecision {
  v1::Commit::Decision decision = v1::Commit::APPLY;
  // clip factor / total weight, once, in float.
  float gradient_scale = 0;
  // Mean over the step.
  double loss = 0;
  // Norm of the mean gradient over all parameters of all stages, before clipping.
  double gradient_norm = 0;
  // Why it is skipped: "stage 1: group1.0 gradient: 3 non-finite values"; empty when applied.
  std::vector<std::string> reasons;
};

// `computed` in order of the stages. The global norm is the sum of the per-parameter squared norms in global
// parameter order, in double, its root divided by the weight; the clip factor is that of
// torch.nn.utils.clip_grad_norm_: min(1, clip_norm / (norm + 1e-6)). clip_norm 0 = no clipping.
// The gradients carry `loss_scale`; the decision takes it out again.
StepDecision Decide(absl::Span<const v1::Computed> computed, double total_weight, double clip_norm,
                    double loss_scale = 1);

// INTERNAL: the last stage counted another weight than `total_weight`, which the coordinator took from the data: a
// mask was lost or a sample counted twice, and every mean would be wrong.
absl::Status CheckWeight(absl::Span<const v1::Computed> computed, double total_weight);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_STEP_DECISION_H_
