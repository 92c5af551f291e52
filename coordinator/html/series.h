// Curves over the steps of a run, made small enough to be drawn.
#ifndef RESBM_COORDINATOR_HTML_SERIES_H_
#define RESBM_COORDINATOR_HTML_SERIES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace resbm::coordinator {

// Steps ascend, values are finite; both of one length.
struct Series {
  std::vector<std::int64_t> steps;
  std::vector<double> values;

  // A value that is not finite is passed over.
  void Add(std::int64_t step, double value);
  bool empty() const { return steps.empty(); }

  friend bool operator==(const Series&, const Series&) = default;
};

// Of each of `parts` equal stretches of the points the first, the smallest, the largest and the last, so that no peak
// is lost. As it is where it has no more than 4 * parts points. parts >= 1.
Series Thin(const Series& series, int parts);

// How many values a mean of `Smooth` takes for a curve of so many: a fiftieth, odd, at least 1.
int SmoothingWindow(std::int64_t points);
// The mean of the `window` values around each one; of fewer at the ends, as many on both sides. window is odd.
Series Smooth(const Series& series, int window);

struct Histogram {
  double from = 0;
  double width = 0;  // of a bin; 0 where all values are equal
  std::vector<std::int64_t> counts;
  // Values above the last bin: rare ones, that would leave no room for the others.
  std::int64_t above = 0;

  friend bool operator==(const Histogram&, const Histogram&) = default;
};
// From the smallest value to the largest that is not rare: at most 4 times the distance between the quartiles above the
// upper one. No bins for no values. `values` are finite; bins >= 1.
Histogram HistogramOf(absl::Span<const double> values, int bins);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_HTML_SERIES_H_
