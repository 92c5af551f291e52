#include "coordinator/compare/spread.h"

#include <algorithm>
#include <cmath>

namespace resbm::coordinator {
namespace {

std::vector<double> Values(const std::map<std::uint64_t, double>& by_seed) {
  std::vector<double> values;
  for (const auto& [seed, value] : by_seed) values.push_back(value);
  return values;
}

bool SameSeeds(const std::map<std::uint64_t, double>& a, const std::map<std::uint64_t, double>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) { return x.first == y.first; });
}

}  // namespace

std::optional<Spread> SpreadOf(absl::Span<const double> values) {
  Spread spread;
  double sum = 0;
  for (double v : values) {
    if (!std::isfinite(v)) continue;
    spread.min = spread.count == 0 ? v : std::min(spread.min, v);
    spread.max = spread.count == 0 ? v : std::max(spread.max, v);
    sum += v;
    ++spread.count;
  }
  if (spread.count == 0) return std::nullopt;
  spread.mean = sum / spread.count;
  if (spread.count == 1) return spread;
  double squares = 0;
  for (double v : values) {
    if (std::isfinite(v)) squares += (v - spread.mean) * (v - spread.mean);
  }
  spread.deviation = std::sqrt(squares / (spread.count - 1));
  return spread;
}

double StudentT95(int degrees) {
  constexpr double kQuantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                   2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                   2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return kQuantiles[std::clamp(degrees, 1, 30) - 1];
}

std::optional<Difference> DifferenceOf(const std::map<std::uint64_t, double>& baseline,
                                       const std::map<std::uint64_t, double>& arm) {
  const std::optional<Spread> from = SpreadOf(Values(baseline));
  const std::optional<Spread> to = SpreadOf(Values(arm));
  if (!from || !to) return std::nullopt;
  Difference difference;
  difference.mean = to->mean - from->mean;
  difference.seeds = std::min(from->count, to->count);
  if (difference.seeds < 2) return difference;
  if (SameSeeds(baseline, arm) && from->count == to->count) {
    std::vector<double> differences;
    for (const auto& [seed, value] : arm) differences.push_back(value - baseline.at(seed));
    const Spread spread = *SpreadOf(differences);
    if (spread.count == to->count) {
      difference.paired = true;
      difference.margin = StudentT95(spread.count - 1) * spread.deviation / std::sqrt(spread.count);
      return difference;
    }
  }
  const double a = from->deviation * from->deviation / from->count;
  const double b = to->deviation * to->deviation / to->count;
  // Welch-Satterthwaite.
  const double below = a * a / (from->count - 1) + b * b / (to->count - 1);
  const double degrees = below > 0 ? (a + b) * (a + b) / below : 1;
  difference.margin = StudentT95(static_cast<int>(std::min(degrees, 30.0))) * std::sqrt(a + b);
  return difference;
}

}  // namespace resbm::coordinator
