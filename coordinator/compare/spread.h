// Mean and spread over seeds, and what may be said of a difference between two arms.
#ifndef RESBM_COORDINATOR_COMPARE_SPREAD_H_
#define RESBM_COORDINATOR_COMPARE_SPREAD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace resbm::coordinator {

// Below so many seeds of each arm no verdict is claimed.
inline constexpr int kSeedsForVerdict = 3;

struct Spread {
  int count = 0;
  double mean = 0;
  double deviation = 0;  // of the sample (divided by count - 1); 0 below two values
  double min = 0;
  double max = 0;

  friend bool operator==(const Spread&, const Spread&) = default;
};

// Absent for no values. Values that are not finite are left out.
std::optional<Spread> SpreadOf(absl::Span<const double> values);

// Two-sided 95 % quantile of Student's t distribution; that of 30 degrees beyond 30. degrees >= 1.
double StudentT95(int degrees);

// Arm less baseline.
struct Difference {
  double mean = 0;
  // Half of the 95 % confidence interval of the mean; absent where one of the two has less than two seeds.
  std::optional<double> margin;
  // Both have the same seeds, so that differences seed by seed were taken: initial weights and the order of
  // the samples are then not part of the noise.
  bool paired = false;
  int seeds = 0;  // of the arm with fewer

  friend bool operator==(const Difference&, const Difference&) = default;
};

// By seed. Paired: t interval of the differences. Otherwise Welch's (degrees of freedom rounded down).
// Absent when one of them is empty.
std::optional<Difference> DifferenceOf(const std::map<std::uint64_t, double>& baseline,
                                       const std::map<std::uint64_t, double>& arm);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_COMPARE_SPREAD_H_
