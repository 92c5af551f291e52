#include "coordinator/sweep/early_stop.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace resbm::coordinator {

EarlyStop::EarlyStop(std::int64_t total_steps, double margin, std::vector<double> best)
    : total_steps_(total_steps), margin_(margin), best_(std::move(best)) {}

bool EarlyStop::OnStep(std::int64_t step, double loss, bool skipped) {
  if (!skipped) {
    sum_ += loss;
    ++count_;
  }
  // A run of less than ten steps has tenths without steps; they are not checked.
  while (static_cast<int>(tenths_.size()) < kChecks &&
         step >= total_steps_ * (static_cast<std::int64_t>(tenths_.size()) + 1) / kChecks) {
    const std::size_t tenth = tenths_.size();
    tenths_.push_back(count_ > 0 ? sum_ / count_ : std::numeric_limits<double>::quiet_NaN());
    sum_ = 0;
    count_ = 0;
    if (margin_ <= 0 || tenth >= best_.size() || std::isnan(best_[tenth])) continue;
    // Not "above": a NaN fails too.
    failed_ = tenths_[tenth] <= (1 + margin_) * best_[tenth] ? 0 : failed_ + 1;
    hopeless_ = hopeless_ || (failed_ >= kHopelessAfter && total_steps_ >= kChecks);
  }
  return !hopeless_;
}

std::vector<double> BestTenths(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty()) return b;
  std::vector<double> best = a;
  for (std::size_t i = 0; i < best.size() && i < b.size(); ++i) {
    // fmin prefers the number to a NaN.
    best[i] = std::fmin(a[i], b[i]);
  }
  return best;
}

}  // namespace resbm::coordinator
