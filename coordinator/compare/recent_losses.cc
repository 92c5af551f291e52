#include "coordinator/compare/recent_losses.h"

#include <algorithm>
#include <cmath>

namespace resbm::coordinator {
namespace {

constexpr std::size_t kMost = 100;        // whose second half gives the slope
constexpr std::size_t kSpikeWindow = 21;  // a step, and those that it is compared with

}  // namespace

void RecentLosses::Add(std::int64_t step, double loss) {
  spike_ = false;
  if (!std::isfinite(loss)) return;
  if (points_.size() == kMost) points_.erase(points_.begin());
  points_.push_back({step, loss});
  const std::size_t window = std::min(kSpikeWindow, points_.size());
  const auto spikes = LossSpikes(absl::MakeConstSpan(points_).last(window));
  spike_ = !spikes.empty() && spikes.back() == step;
}

std::optional<double> RecentLosses::slope() const { return LossSlope(points_); }

bool RecentLosses::spike() const { return spike_; }

}  // namespace resbm::coordinator
