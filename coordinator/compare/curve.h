// What a loss curve says: its course at a few points, its slope, its spikes.
#ifndef RESBM_COORDINATOR_COMPARE_CURVE_H_
#define RESBM_COORDINATOR_COMPARE_CURVE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace resbm::coordinator {

// A step that was not skipped, and its mean loss. Steps ascend; losses are finite.
struct CurvePoint {
  std::int64_t step = 0;  // from 1
  double loss = 0;

  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

// The course in `parts` equal parts of the steps up to the last: each with its last step, and the mean loss of
// its points. A part without points is left out. Losses of single steps are too noisy to compare.
std::vector<CurvePoint> Course(absl::Span<const CurvePoint> curve, int parts);

// Slope of the least-squares line through the second half of the points, as loss per 100 steps: clearly
// negative where longer training still pays. Absent below 4 points.
std::optional<double> LossSlope(absl::Span<const CurvePoint> curve);

// Steps whose loss lies far above the window of (up to) 20 points before them: by more than 6 median absolute
// deviations, and by more than a tenth of the window's median. Windows of less than 8 points say nothing.
std::vector<std::int64_t> LossSpikes(absl::Span<const CurvePoint> curve);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_COMPARE_CURVE_H_
