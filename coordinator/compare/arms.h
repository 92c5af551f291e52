// Runs of one job that differ in the seed only are one arm of a comparison.
#ifndef RESBM_COORDINATOR_COMPARE_ARMS_H_
#define RESBM_COORDINATOR_COMPARE_ARMS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/compare/run_record.h"

namespace resbm::coordinator {

struct Arm {
  std::string name;
  std::vector<RunRecord> runs;  // at least one

  std::set<std::uint64_t> seeds() const;
  // By seed; where a seed is there twice, the mean. Runs without the figure are left out.
  std::map<std::uint64_t, double> figure(absl::string_view name) const;
};

// In order of their first runs. One arm: equal jobs but for seed and name, and the same number of stages (times
// and memory depend on it). Named by the job, where jobs have names of their own, else by the fewest fields that tell
// them apart ("ratio=8"), those of the boundary first, else by number.
std::vector<Arm> GroupRuns(std::vector<RunRecord> runs);

// What a reader must know before believing the comparison, one line each: arms that differ from the first in
// data, optimizer, batch, steps, seeds or devices; runs within one arm that differ in more than the seed, or that
// lack the loss that others of it have; a seed twice; skipped steps.
std::vector<std::string> Caveats(const std::vector<Arm>& arms);

// "r8: boundary.ratio = 8 (baseline: 16)": where the jobs of the arms differ from the first's, for all but the
// first.
std::vector<std::string> DescribeDifferences(const std::vector<Arm>& arms);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_COMPARE_ARMS_H_
