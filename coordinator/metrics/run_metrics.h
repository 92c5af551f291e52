// Gathers what /metrics says of a run, once a step.
#ifndef RESBM_COORDINATOR_METRICS_RUN_METRICS_H_
#define RESBM_COORDINATOR_METRICS_RUN_METRICS_H_

#include "coordinator/metrics/run_snapshot.h"
#include "coordinator/run/run_driver.h"
#include "coordinator/run/run_setup.h"
#include "proto/base/mutex.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// Reports come on the thread of the run, scrapes on any other: a mutex is held for a few additions, or for a copy.
class RunMetrics {
 public:
  // Before the first step: what the run is.
  explicit RunMetrics(const RunSetup& setup);
  // The same, for tests: names, number of stages and boundaries of `empty`.
  explicit RunMetrics(RunSnapshot empty) : snapshot_(std::move(empty)) {}

  void OnStep(const StepReport& report) RESBM_EXCLUDES(mutex_);
  void OnEvaluation(const EvaluationReport& report) RESBM_EXCLUDES(mutex_);
  void OnProgress(int stage, const v1::Progress& progress) RESBM_EXCLUDES(mutex_);

  RunSnapshot Snapshot() const RESBM_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  RunSnapshot snapshot_ RESBM_GUARDED_BY(mutex_);
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_METRICS_RUN_METRICS_H_
