#include "coordinator/compare/curve.h"

#include <algorithm>
#include <cmath>

#include "coordinator/report/median.h"

namespace resbm::coordinator {
namespace {

constexpr std::size_t kWindow = 20;
constexpr std::size_t kLeastWindow = 8;
constexpr double kDeviations = 6;
constexpr double kLeastRise = 0.1;

}  // namespace

std::vector<CurvePoint> Course(absl::Span<const CurvePoint> curve, int parts) {
  std::vector<CurvePoint> course;
  if (curve.empty()) return course;
  const std::int64_t last = curve.back().step;
  std::size_t at = 0;
  for (int part = 1; part <= parts; ++part) {
    const std::int64_t end = last * part / parts;
    double sum = 0;
    int count = 0;
    for (; at < curve.size() && curve[at].step <= end; ++at, ++count) sum += curve[at].loss;
    if (count > 0) course.push_back({end, sum / count});
  }
  return course;
}

std::optional<double> LossSlope(absl::Span<const CurvePoint> curve) {
  if (curve.size() < 4) return std::nullopt;
  const absl::Span<const CurvePoint> half = curve.subspan(curve.size() / 2);
  double step = 0, loss = 0;
  for (const CurvePoint& p : half) {
    step += static_cast<double>(p.step) / half.size();
    loss += p.loss / half.size();
  }
  double both = 0, squares = 0;
  for (const CurvePoint& p : half) {
    both += (p.step - step) * (p.loss - loss);
    squares += (p.step - step) * (p.step - step);
  }
  return squares > 0 ? std::optional<double>(100 * both / squares) : std::nullopt;
}

std::vector<std::int64_t> LossSpikes(absl::Span<const CurvePoint> curve) {
  std::vector<std::int64_t> spikes;
  for (std::size_t i = kLeastWindow; i < curve.size(); ++i) {
    const std::size_t first = i > kWindow ? i - kWindow : 0;
    std::vector<double> window;
    for (std::size_t k = first; k < i; ++k) window.push_back(curve[k].loss);
    const double median = Median(window);
    for (double& loss : window) loss = std::abs(loss - median);
    const double rise = curve[i].loss - median;
    if (rise > kDeviations * Median(window) && rise > kLeastRise * std::abs(median)) spikes.push_back(curve[i].step);
  }
  return spikes;
}

}  // namespace resbm::coordinator
