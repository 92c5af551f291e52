// Arms side by side, the first being the baseline: every figure with its spread over seeds, and what it differs
// by from the baseline's.
#ifndef RESBM_COORDINATOR_COMPARE_COMPARISON_H_
#define RESBM_COORDINATOR_COMPARE_COMPARISON_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/compare/arms.h"
#include "coordinator/compare/curve.h"
#include "coordinator/compare/spread.h"

namespace resbm::coordinator {

struct ComparedArm {
  std::string name;
  std::vector<std::string> paths;
  std::set<std::uint64_t> seeds;
  int stages = 1;
  // Over the seeds, a seed that is there twice with its mean. By the names of RunRecord::figures.
  std::map<std::string, Spread> figures;
  // Empty for the baseline.
  std::map<std::string, Difference> differences;
  // Mean over the runs, at the same shares of the steps for every arm.
  std::vector<CurvePoint> course;
  // Steps with a spike, of all runs.
  std::set<std::int64_t> spikes;

  std::optional<double> mean(absl::string_view figure) const;
};

struct Comparison {
  std::vector<ComparedArm> arms;         // the first is the baseline; at least one
  std::vector<std::string> differences;  // of the jobs
  std::vector<std::string> caveats;
  // One line an arm but the baseline: what may be said of its accuracy.
  std::vector<std::string> verdicts;

  const ComparedArm& baseline() const { return arms.front(); }
};

// `arms`: at least one, each with at least one run.
Comparison Compare(const std::vector<Arm>& arms);

// A figure of summary.json that only language models have: what tells them from others.
inline constexpr char kBitsPerByte[] = "bits_per_byte";

// What a comparison calls quality: of language models the validation loss; else top-1 where both arms have it, else
// the validation loss, else the final loss.
struct Quality {
  std::string figure;  // its name
  std::string unit;    // "points" (of accuracy), "" (loss)
  double scale = 1;    // from the figure to the unit; negative where less is better
};
// Absent when the arms have none in common.
std::optional<Quality> CommonQuality(const ComparedArm& a, const ComparedArm& b);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_COMPARE_COMPARISON_H_
