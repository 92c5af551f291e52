#include "coordinator/html/series.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>

namespace resbm::coordinator {
namespace {

constexpr int kShareOfWindow = 50;
// Beyond the upper quartile by so many times the distance between the quartiles a value is rare.
constexpr double kQuartileDistances = 4;

}  // namespace

void Series::Add(std::int64_t step, double value) {
  if (!std::isfinite(value)) return;
  steps.push_back(step);
  values.push_back(value);
}

Series Thin(const Series& series, int parts) {
  const std::size_t count = series.values.size();
  const std::size_t pieces = static_cast<std::size_t>(parts);
  if (count <= 4 * pieces) return series;
  Series thin;
  for (std::size_t part = 0; part < pieces; ++part) {
    const std::size_t begin = count * part / pieces, end = count * (part + 1) / pieces;
    const auto [low, high] = std::minmax_element(series.values.begin() + begin, series.values.begin() + end);
    const std::set<std::size_t> kept = {begin, static_cast<std::size_t>(low - series.values.begin()),
                                        static_cast<std::size_t>(high - series.values.begin()), end - 1};
    for (const std::size_t i : kept) thin.Add(series.steps[i], series.values[i]);
  }
  return thin;
}

int SmoothingWindow(std::int64_t points) { return static_cast<int>(points / kShareOfWindow) | 1; }

Series Smooth(const Series& series, int window) {
  const std::size_t count = series.values.size();
  // Sums of differences lose digits where one value is far above the others; in long double that is nothing to see.
  std::vector<long double> sums(count + 1, 0);
  for (std::size_t i = 0; i < count; ++i) sums[i + 1] = sums[i] + series.values[i];
  Series smooth;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t half = std::min({static_cast<std::size_t>(window / 2), i, count - 1 - i});
    const long double sum = sums[i + half + 1] - sums[i - half];
    smooth.Add(series.steps[i], static_cast<double>(sum / static_cast<long double>(2 * half + 1)));
  }
  return smooth;
}

Histogram HistogramOf(absl::Span<const double> values, int bins) {
  Histogram histogram;
  if (values.empty()) return histogram;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double low = sorted[(sorted.size() - 1) / 4], high = sorted[3 * (sorted.size() - 1) / 4];
  const double limit = high > low ? high + kQuartileDistances * (high - low) : sorted.back();
  const double last = *std::prev(std::upper_bound(sorted.begin(), sorted.end(), limit));
  histogram.from = sorted.front();
  histogram.width = (last - histogram.from) / bins;
  histogram.counts.assign(histogram.width > 0 ? bins : 1, 0);
  for (const double value : sorted) {
    if (value > last) {
      ++histogram.above;
    } else {
      const auto bin = histogram.width > 0 ? static_cast<std::size_t>((value - histogram.from) / histogram.width) : 0;
      ++histogram.counts[std::min(bin, histogram.counts.size() - 1)];
    }
  }
  return histogram;
}

}  // namespace resbm::coordinator
