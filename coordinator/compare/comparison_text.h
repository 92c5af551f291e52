// A comparison for people, for spreadsheets and for programs.
#ifndef RESBM_COORDINATOR_COMPARE_COMPARISON_TEXT_H_
#define RESBM_COORDINATOR_COMPARE_COMPARISON_TEXT_H_

#include <string>
#include <vector>

#include "coordinator/compare/comparison.h"
#include "coordinator/compare/gate.h"
#include "coordinator/report/terminal.h"

namespace resbm::coordinator {

// Tables of at most 100 columns: quality, speed, bytes, stages, loss curve, then notes, verdicts and gates.
// "a +- b": mean and sample standard deviation over the seeds. `every_figure` adds one row a figure and arm.
std::string FormatComparison(const Comparison& comparison, const std::vector<GateResult>& gates, bool every_figure,
                             const Terminal& terminal);

// "arm,figure,runs,mean,deviation,min,max,difference,margin95": one row a figure and arm, the last two empty
// for the baseline and where there are too few seeds.
std::string ComparisonCsv(const Comparison& comparison);

// {"arms": [{"name", "runs", "seeds", "figures": {NAME: {...}}, "course", "spikes"}], "differences", "caveats",
// "verdicts", "gates"}.
std::string ComparisonJson(const Comparison& comparison, const std::vector<GateResult>& gates);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_COMPARE_COMPARISON_TEXT_H_
