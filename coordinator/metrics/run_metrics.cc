#include "coordinator/metrics/run_metrics.h"

#include <algorithm>
#include <cstddef>

namespace resbm::coordinator {
namespace {

RunSnapshot Empty(const RunSetup& setup) {
  RunSnapshot empty;
  empty.job_id = setup.plan.job_id;
  empty.name = setup.job.name();
  empty.total_steps = setup.plan.total_steps;
  empty.stages.resize(setup.stages());
  for (int cut : setup.partition.cuts) empty.cuts.emplace_back().boundary = setup.model.boundaries[cut].cut_point();
  return empty;
}

void Add(const v1::WorkTimes& times, v1::WorkTimes* sum) {
  sum->set_forward_seconds(sum->forward_seconds() + times.forward_seconds());
  sum->set_backward_seconds(sum->backward_seconds() + times.backward_seconds());
  sum->set_waiting_up_seconds(sum->waiting_up_seconds() + times.waiting_up_seconds());
  sum->set_waiting_down_seconds(sum->waiting_down_seconds() + times.waiting_down_seconds());
  sum->set_commit_seconds(sum->commit_seconds() + times.commit_seconds());
}

}  // namespace

RunMetrics::RunMetrics(const RunSetup& setup) : RunMetrics(Empty(setup)) {}

void RunMetrics::OnStep(const StepReport& report) {
  const bool skipped = report.decision.decision == v1::Commit::SKIP;
  const double seconds = absl::ToDoubleSeconds(report.duration);
  MutexLock lock(mutex_);
  RunSnapshot& s = snapshot_;
  s.step = report.step;
  s.fence = report.fence;
  s.epoch = report.shape.epoch;
  if (!skipped) s.loss = report.decision.loss;
  s.learning_rate = report.learning_rate;
  s.gradient_norm = report.decision.gradient_norm;
  s.samples += static_cast<std::uint64_t>(report.shape.samples());
  ++(skipped ? s.skipped_steps : s.applied_steps);
  s.step_seconds.Observe(seconds);
  double waited = 0, total = 0;
  for (std::size_t k = 0; k < std::min(s.stages.size(), report.computed.size()); ++k) {
    const v1::Computed& computed = report.computed[k];
    const v1::WorkTimes& times = computed.times();
    RunSnapshot::Stage& stage = s.stages[k];
    Add(times, &stage.times);
    if (seconds > 0) stage.utilization = (times.forward_seconds() + times.backward_seconds()) / seconds;
    stage.peak_memory_bytes = computed.memory().peak_bytes();
    stage.waiting_seconds.reset();
    waited += times.waiting_up_seconds() + times.waiting_down_seconds();
    total += times.total_seconds();
    // What a stage sends down is the activations of the cut after it, up the gradients of the one before it.
    if (k < s.cuts.size()) {
      s.cuts[k].activation_payload_bytes += computed.bytes().down_payload();
      s.cuts[k].activation_metadata_bytes += computed.bytes().down_metadata();
    }
    if (k > 0 && k - 1 < s.cuts.size()) {
      s.cuts[k - 1].gradient_payload_bytes += computed.bytes().up_payload();
      s.cuts[k - 1].gradient_metadata_bytes += computed.bytes().up_metadata();
    }
  }
  s.waiting_ratio = total > 0 ? waited / total : 0;
}

void RunMetrics::OnEvaluation(const EvaluationReport& report) {
  MutexLock lock(mutex_);
  ++snapshot_.evaluations;
  snapshot_.evaluation_loss = report.loss;
  snapshot_.evaluation_top1 = report.top1;
}

void RunMetrics::OnProgress(int stage, const v1::Progress& progress) {
  MutexLock lock(mutex_);
  if (stage < 0 || static_cast<std::size_t>(stage) >= snapshot_.stages.size()) return;
  std::optional<double>& waiting = snapshot_.stages[stage].waiting_seconds;
  waiting.reset();
  if (progress.has_waiting_for()) waiting = progress.waiting_for().seconds();
}

RunSnapshot RunMetrics::Snapshot() const {
  MutexLock lock(mutex_);
  return snapshot_;
}

}  // namespace resbm::coordinator
