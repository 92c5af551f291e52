// Where two runs of one job part: the first step, then the first parameter, then the final weights.
#ifndef RESBM_COORDINATOR_COMPARE_RUN_DIFFERENCE_H_
#define RESBM_COORDINATOR_COMPARE_RUN_DIFFERENCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace resbm::coordinator {

// One step of a run. Bits count: everything is compared exactly.
struct StepTrace {
  std::int64_t step = 0;
  double loss = 0;
  std::optional<double> gradient_norm;
  bool skipped = false;
  // Of the gradient of each parameter in global order; empty where only metrics.jsonl is left.
  std::vector<double> squared_norms;
  // Signals of the cut points by name, "group0.1 z_rms": of what crosses, first to last, then of gradients, last to
  // first, so that the first that differs says between which cut points it begins. Empty where they were not taken.
  std::vector<std::pair<std::string, double>> at_cuts;
};

struct RunTrace {
  std::string name;  // "1 stage", or a path
  std::vector<StepTrace> steps;
  std::vector<std::string> parameters;  // names of squared_norms; may be empty
  std::string weights;                  // safetensors
};

struct TensorDifference {
  std::string name;
  std::string what;     // "max |a - b| / max |a| = 3.1e-06, 12 of 64 values", or "only in one", "shape", ...
  double relative = 0;  // infinite where it has no meaning

  friend bool operator==(const TensorDifference&, const TensorDifference&) = default;
};

struct RunDifference {
  int steps = 0;       // compared
  int parameters = 0;  // whose gradients were compared, a step
  int tensors = 0;     // of weights
  // The first step that differs, and how; empty: none.
  std::string first_step;
  // At that step: signals that differ, in the order of computing.
  std::vector<TensorDifference> at_cuts;
  int signals = 0;  // compared, a step
  // At that step: the parameters whose gradient norms differ, in global order.
  std::vector<TensorDifference> gradients;
  // In the order of the file.
  std::vector<TensorDifference> weights;

  bool equal() const { return first_step.empty() && weights.empty(); }
};

// INVALID_ARGUMENT: weights that are not a safetensors file (says whose).
absl::StatusOr<RunDifference> CompareRuns(const RunTrace& a, const RunTrace& b);

// Tensors that differ in any bit. F32 and F64 values get figures. INVALID_ARGUMENT as above.
absl::StatusOr<std::vector<TensorDifference>> CompareWeights(std::string_view a, std::string_view b, int* tensors);

// One line when equal, else the first difference and the largest ones. With line end.
std::string Describe(const RunTrace& a, const RunTrace& b, const RunDifference& difference);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_COMPARE_RUN_DIFFERENCE_H_
