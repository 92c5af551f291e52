// What a sweep comes to: accuracy against bytes, and what to do next.
#ifndef RESBM_COORDINATOR_SWEEP_ADVICE_H_
#define RESBM_COORDINATOR_SWEEP_ADVICE_H_

#include <optional>
#include <string>
#include <vector>

#include "coordinator/compare/comparison.h"
#include "coordinator/report/terminal.h"

namespace resbm::coordinator {

struct SweepOutcome {
  std::string field;
  double fraction = 1;  // of the training data
  // Points of top-1 that may be lost; of language models and those without top-1, percent of the validation loss.
  double budget = 0.5;
  // Arms with a run that ended; the first is the baseline.
  Comparison comparison;
  struct Stopped {
    std::string name;
    int runs = 0;  // that were ended early
  };
  // Hopeless ones; they are no candidates.
  std::vector<Stopped> stopped;
  // Arms whose turn has not come, in a sweep that goes on or was interrupted.
  std::vector<std::string> untried;

  bool is_stopped(const std::string& arm) const;
};

// What an arm loses against the baseline: points of top-1, or percent of the loss (which, the baseline's CommonQuality
// with itself says); negative is a gain.
struct Loss {
  double mean = 0;
  std::optional<double> margin;  // half of the 95 % interval
  int seeds = 0;
  bool points = true;
};
// Absent when the arm does not have that figure: one that was stopped before its first evaluation.
std::optional<Loss> LossOf(const Comparison& comparison, const ComparedArm& arm);

// The arm with the fewest bytes among those within the budget, of equal bytes the one that loses least; null when there
// is none (or all were stopped).
const ComparedArm* Choose(const SweepOutcome& outcome);

// An arm a row: seeds, bytes a sample at the cut points, accuracy with its range over the seeds, what it lost with
// the 95 % margin, and where that interval lies: "within" or "beyond" the budget, "within?" and "beyond?" when the
// noise reaches across it. At most 100 columns.
std::string SweepTable(const SweepOutcome& outcome, const Terminal& terminal);

// Lines: the choice (a hint only, below kSeedsForVerdict seeds), then what to raise or lower.
std::vector<std::string> Advise(const SweepOutcome& outcome);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_SWEEP_ADVICE_H_
