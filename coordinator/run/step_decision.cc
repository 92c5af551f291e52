#include "coordinator/run/step_decision.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace resbm::coordinator {

StepDecision Decide(absl::Span<const v1::Computed> computed, double total_weight, double clip_norm,
                    double loss_scale) {
  StepDecision d;
  double loss_sum = 0;
  double squared = 0;
  for (std::size_t stage = 0; stage < computed.size(); ++stage) {
    const v1::Computed& c = computed[stage];
    loss_sum += c.loss_sum();
    bool norms_finite = true;
    for (double s : c.squared_norms()) {
      squared += s;
      norms_finite = norms_finite && std::isfinite(s);
    }
    for (const v1::NonFinite& n : c.non_finite()) {
      if (n.count() == 0) continue;
      d.reasons.push_back(absl::StrFormat("stage %d: %s: %d non-finite value%s", stage, n.where(), n.count(),
                                          n.count() == 1 ? "" : "s"));
    }
    if (!norms_finite) {
      d.reasons.push_back(absl::StrFormat("stage %d: the squared norm of a gradient is not finite", stage));
    }
  }
  if (!std::isfinite(loss_sum)) d.reasons.push_back("the loss is not finite");
  if (d.reasons.empty() && !std::isfinite(squared)) d.reasons.push_back("the global gradient norm is not finite");

  d.loss = loss_sum / total_weight;
  d.gradient_norm = std::sqrt(squared) / (total_weight * loss_scale);
  if (!d.reasons.empty()) {
    d.decision = v1::Commit::SKIP;
    return d;
  }
  double clip = 1.0;
  if (clip_norm > 0) clip = std::min(1.0, clip_norm / (d.gradient_norm + 1e-6));
  d.gradient_scale = static_cast<float>(clip / (total_weight * loss_scale));
  return d;
}

absl::Status CheckWeight(absl::Span<const v1::Computed> computed, double total_weight) {
  const double counted = computed.empty() ? 0 : computed.back().weight();
  if (counted == total_weight) return absl::OkStatus();
  return absl::InternalError(
      absl::StrFormat("stage %d counted %.17g samples or tokens with a target, the data has %.17g in this step; are "
                      "coordinator and stage servers of the same release?",
                      static_cast<int>(computed.size()) - 1, counted, total_weight));
}

}  // namespace resbm::coordinator
