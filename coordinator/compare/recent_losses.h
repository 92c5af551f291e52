// Slope and spikes of a loss curve while it grows: the same rules as of a curve that is there (curve.h), over the last
// steps.
#ifndef RESBM_COORDINATOR_COMPARE_RECENT_LOSSES_H_
#define RESBM_COORDINATOR_COMPARE_RECENT_LOSSES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/compare/curve.h"

namespace resbm::coordinator {

class RecentLosses {
 public:
  // A step that was not skipped; a loss that is not finite is passed over.
  void Add(std::int64_t step, double loss);

  // Of the line through the last 50 steps or less, as loss per 100 steps. Absent below 4.
  std::optional<double> slope() const;
  // Whether the last step's loss lies far above those of the 20 before it.
  bool spike() const;

 private:
  std::vector<CurvePoint> points_;  // the last 100
  bool spike_ = false;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_COMPARE_RECENT_LOSSES_H_
