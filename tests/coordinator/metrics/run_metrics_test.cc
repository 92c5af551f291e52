#include "coordinator/metrics/run_metrics.h"

#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "coordinator/metrics/run_families.h"
#include "tests/support/http_get.h"

namespace resbm::coordinator {
namespace {

RunSnapshot TwoStages() {
  RunSnapshot empty;
  empty.job_id = "a-1";
  empty.name = "a";
  empty.total_steps = 10;
  empty.stages.resize(2);
  empty.cuts.resize(1);
  empty.cuts[0].boundary = "group0.1";
  return empty;
}

StepReport Step(std::int64_t step, v1::Commit::Decision decision) {
  StepReport report;
  report.step = step;
  report.shape.epoch = 2;
  report.shape.micro_batches = {16, 8};
  report.decision.decision = decision;
  report.decision.loss = decision == v1::Commit::SKIP ? std::nan("") : 0.5;
  report.decision.gradient_norm = 3;
  report.learning_rate = 0.1;
  report.duration = absl::Seconds(2);
  report.fence.set_epoch(1);
  report.fence.set_generation(1);
  report.computed.resize(2);
  for (int k : {0, 1}) {
    v1::Computed& computed = report.computed[k];
    computed.mutable_times()->set_forward_seconds(0.5);
    computed.mutable_times()->set_backward_seconds(1);
    computed.mutable_times()->set_waiting_up_seconds(k == 0 ? 0.1 : 0.3);
    computed.mutable_times()->set_total_seconds(2);
    computed.mutable_memory()->set_peak_bytes(1000 + k);
    computed.mutable_bytes()->set_down_payload(k == 0 ? 700 : 1);
    computed.mutable_bytes()->set_down_metadata(k == 0 ? 70 : 1);
    computed.mutable_bytes()->set_up_payload(k == 0 ? 1 : 600);
  }
  return report;
}

std::map<std::string, double> Samples(const RunMetrics& run) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, RunFamilies(run.Snapshot()));
  return resbm::testing::ParseSamples(text.str());
}

TEST(RunMetrics, FollowTheSteps) {
  RunMetrics run(TwoStages());
  run.OnStep(Step(1, v1::Commit::APPLY));
  run.OnStep(Step(2, v1::Commit::SKIP));
  EvaluationReport evaluation;
  evaluation.loss = 0.4;
  evaluation.top1 = 0.87;
  run.OnEvaluation(evaluation);
  auto samples = Samples(run);
  const std::map<std::string, double> expected = {
      {"resbm_train_job_info{job=\"a-1\",name=\"a\",fence=\"1.1\"}", 1},
      {"resbm_train_steps_planned", 10},
      {"resbm_train_last_step", 2},
      {"resbm_train_epoch", 2},
      {"resbm_train_loss", 0.5},
      {"resbm_train_learning_rate", 0.1},
      {"resbm_train_gradient_norm", 3},
      {"resbm_train_samples_total", 48},
      {"resbm_train_steps_total{decision=\"apply\"}", 1},
      {"resbm_train_steps_total{decision=\"skip\"}", 1},
      {"resbm_train_step_seconds_count", 2},
      {"resbm_train_step_seconds_sum", 4},
      {"resbm_train_evaluations_total", 1},
      {"resbm_train_evaluation_loss", 0.4},
      {"resbm_train_evaluation_top1_ratio", 0.87},
      {"resbm_train_waiting_ratio", 0.1},
      {"resbm_train_stage_phase_seconds_total{stage=\"1\",phase=\"waiting_up\"}", 0.6},
      {"resbm_train_stage_utilization_ratio{stage=\"0\"}", 0.75},
      {"resbm_train_stage_memory_peak_bytes{stage=\"1\"}", 1001},
      {"resbm_train_boundary_payload_bytes_total{boundary=\"group0.1\",direction=\"activations\"}", 1400},
      {"resbm_train_boundary_metadata_bytes_total{boundary=\"group0.1\",direction=\"activations\"}", 140},
      {"resbm_train_boundary_payload_bytes_total{boundary=\"group0.1\",direction=\"gradients\"}", 1200},
  };
  for (const auto& [name, value] : expected) {
    EXPECT_EQ(samples.count(name), 1u) << name;
    EXPECT_DOUBLE_EQ(samples[name], value) << name;
  }
}

TEST(RunMetrics, BeforeTheFirstStepWhatDoesNotExistIsAbsent) {
  const auto samples = Samples(RunMetrics(TwoStages()));
  EXPECT_EQ(samples.at("resbm_train_last_step"), 0);
  for (const char* absent : {"resbm_train_loss", "resbm_train_epoch", "resbm_train_evaluation_loss",
                             "resbm_train_evaluation_top1_ratio", "resbm_train_waiting_ratio"}) {
    EXPECT_EQ(samples.count(absent), 0u) << absent;
  }
}

TEST(RunMetrics, AStageThatWaitsIsSeenUntilItGoesOn) {
  RunMetrics run(TwoStages());
  v1::Progress progress;
  progress.mutable_waiting_for()->set_seconds(7);
  run.OnProgress(1, progress);
  run.OnProgress(5, progress);  // no such stage
  EXPECT_EQ(Samples(run)["resbm_train_stage_waiting_seconds{stage=\"1\"}"], 7);
  run.OnProgress(1, v1::Progress());
  EXPECT_EQ(Samples(run).count("resbm_train_stage_waiting_seconds{stage=\"1\"}"), 0u);
}

TEST(RunMetrics, EveryMetricOfTheCatalogueIsThereWhenEverythingHasAValue) {
  RunMetrics run(TwoStages());
  run.OnStep(Step(1, v1::Commit::APPLY));
  run.OnEvaluation(EvaluationReport());
  v1::Progress progress;
  progress.mutable_waiting_for();
  run.OnProgress(0, progress);
  std::set<std::string> present, catalogue;
  for (const prometheus::MetricFamily& family : RunFamilies(run.Snapshot())) present.insert(family.name);
  for (const metrics::Metric& metric : RunMetricsCatalogue()) catalogue.insert(std::string(metric.name));
  EXPECT_EQ(present, catalogue);
}

TEST(RunMetrics, ScrapesWhileItTrainsSeeWholeSteps) {
  RunMetrics run(TwoStages());
  std::thread trainer([&] {
    for (int step = 1; step <= 200; ++step) run.OnStep(Step(step, v1::Commit::APPLY));
  });
  for (RunSnapshot s = run.Snapshot(); s.step.value_or(0) < 200; s = run.Snapshot()) {
    EXPECT_EQ(s.samples, 24 * s.applied_steps);
    EXPECT_EQ(s.step.value_or(0), static_cast<std::int64_t>(s.applied_steps));
  }
  trainer.join();
}

}  // namespace
}  // namespace resbm::coordinator
