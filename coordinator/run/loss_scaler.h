// The factor that the loss is multiplied by before the backward pass when stages compute in fp16, so that small
// gradients do not flush to zero: as torch.amp.GradScaler, but decided once for all stages with the step's commit.
#ifndef RESBM_COORDINATOR_RUN_LOSS_SCALER_H_
#define RESBM_COORDINATOR_RUN_LOSS_SCALER_H_

#include <algorithm>

namespace resbm::coordinator {

// A power of two at any time: scaling is exact, and gradients are what they would be without but for range.
class LossScaler {
 public:
  static constexpr double kStart = 65536;
  static constexpr double kLargest = 16777216;
  static constexpr int kStepsToGrow = 2000;

  // Off: the scale is 1, whatever happens.
  explicit LossScaler(bool on) : on_(on), scale_(on ? kStart : 1) {}

  double scale() const { return scale_; }

  // After each step: halves it when the step was skipped for a value that is not finite, doubles it after kStepsToGrow
  // steps in a row that were not.
  void OnStep(bool skipped) {
    if (!on_) return;
    if (skipped) {
      scale_ = std::max(1.0, scale_ / 2);
      good_steps_ = 0;
    } else if (++good_steps_ == kStepsToGrow) {
      scale_ = std::min(kLargest, scale_ * 2);
      good_steps_ = 0;
    }
  }

 private:
  const bool on_;
  double scale_;
  int good_steps_ = 0;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_LOSS_SCALER_H_
