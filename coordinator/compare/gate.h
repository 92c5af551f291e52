// Limits that a comparison must keep: `resbm compare --gate top1_drop=0.5`.
#ifndef RESBM_COORDINATOR_COMPARE_GATE_H_
#define RESBM_COORDINATOR_COMPARE_GATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/compare/comparison.h"

namespace resbm::coordinator {

struct Gate {
  std::string name;
  double limit = 0;
};

//   top1_drop                    points of accuracy lost
//   validation_loss_rise         loss gained
//   validation_loss_rise_percent the same in percent of the baseline's
//   samples_per_second_drop      percent of the baseline's
//   peak_memory_rise             percent, of the stage with the most
//   bytes_rise                   percent, at the cuts (where nothing is cut: at the cut points, by plan)
//
// INVALID_ARGUMENT: not NAME=NUMBER, or another name (lists them). A negative limit demands a gain.
absl::StatusOr<Gate> ParseGate(absl::string_view text);
std::vector<std::string> GateNames();

struct GateResult {
  Gate gate;
  std::string arm;
  bool passed = false;
  // "r64: top1_drop 1.20 points (91.00 -> 89.80), limit 0.50"; or what could not be measured, which is a failure.
  std::string text;
  // Both arms have the figure of kSeedsForVerdict seeds or more.
  bool enough_seeds = false;
};

// On means over the seeds, for every arm but the baseline and every gate. A figure that a seed of either arm lacks
// (its loss was not finite, say) cannot be checked.
std::vector<GateResult> CheckGates(const Comparison& comparison, const std::vector<Gate>& gates);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_COMPARE_GATE_H_
