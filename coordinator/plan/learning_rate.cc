#include "coordinator/plan/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace resbm::coordinator {
namespace {

// From `start` at share 0 to `end` at share 1.
double CosineAnneal(double start, double end, double share) {
  return end + (start - end) / 2.0 * (std::cos(std::numbers::pi * share) + 1);
}

double OneCycleFactor(const v1::LearningRateSchedule::OneCycle& cycle, std::int64_t step, std::int64_t total_steps) {
  const double at = static_cast<double>(step - 1);
  const double peak = cycle.rise() * static_cast<double>(total_steps) - 1;  // may lie between two steps
  const double last = static_cast<double>(total_steps - 1);
  const double start = 1 / cycle.start_div();
  if (at <= peak) return peak > 0 ? CosineAnneal(start, 1, at / peak) : 1;
  return CosineAnneal(1, start / cycle.final_div(), (at - peak) / (last - peak));
}

}  // namespace

double LearningRateFactor(const v1::LearningRateSchedule& schedule, std::int64_t step, std::int64_t total_steps) {
  total_steps = std::max<std::int64_t>(total_steps, 1);
  step = std::clamp<std::int64_t>(step, 1, total_steps);
  if (schedule.has_one_cycle()) return OneCycleFactor(schedule.one_cycle(), step, total_steps);
  const std::int64_t warmup = schedule.warmup_steps();
  if (step <= warmup) return static_cast<double>(step) / static_cast<double>(warmup);
  if (!schedule.has_cosine()) return 1;
  const std::int64_t begin = std::max<std::int64_t>(warmup, 0);
  return CosineAnneal(1, schedule.cosine().final_factor(),
                      static_cast<double>(step - 1 - begin) / static_cast<double>(total_steps - begin));
}

}  // namespace resbm::coordinator
