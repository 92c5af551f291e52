// Ends a run that has no hope, before it costs what it cannot give.
#ifndef RESBM_COORDINATOR_SWEEP_EARLY_STOP_H_
#define RESBM_COORDINATOR_SWEEP_EARLY_STOP_H_

#include <cstdint>
#include <vector>

namespace resbm::coordinator {

// The rule: a run is checked at every tenth of its steps. A check fails when the mean loss over that tenth is above
// (1 + margin) times the best that a finished run of the sweep had at the same tenth, or when it is not finite.
// After five failed checks in a row the run is hopeless: so no run ends before its half, and none that comes back.
inline constexpr int kChecks = 10;
inline constexpr int kHopelessAfter = 5;

// Of one run. For one thread.
class EarlyStop {
 public:
  // `best`: of kChecks tenths, or empty: then nothing is hopeless. margin 0.5 is half as much again; 0 = never stop.
  EarlyStop(std::int64_t total_steps, double margin, std::vector<double> best);

  // After each step, from 1 on. A skipped step has no loss. False: hopeless.
  bool OnStep(std::int64_t step, double loss, bool skipped);
  // Mean losses of the tenths that are complete. NaN where every step was skipped.
  const std::vector<double>& tenths() const { return tenths_; }

 private:
  const std::int64_t total_steps_;
  const double margin_;
  const std::vector<double> best_;
  std::vector<double> tenths_;
  double sum_ = 0;
  int count_ = 0;
  int failed_ = 0;
  bool hopeless_ = false;
};

// The smaller of each tenth. Either may be empty.
std::vector<double> BestTenths(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_SWEEP_EARLY_STOP_H_
