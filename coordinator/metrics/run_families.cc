#include "coordinator/metrics/run_families.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/version.h"
#include "proto/wire/fence.h"

namespace resbm::coordinator {
namespace {

using metrics::Kind;

constexpr metrics::Metric kMetrics[] = {
    {"resbm_train_build_info", Kind::kGauge, "version", "1; the label says what the coordinator is."},
    {"resbm_train_job_info", Kind::kGauge, "job,name,fence",
     "1; the labels say which run it is, and the fence of the last step (empty before the first)."},
    {"resbm_train_steps_planned", Kind::kGauge, "", "Steps of the whole run."},
    {"resbm_train_last_step", Kind::kGauge, "", "The last step that every stage has committed; 0 before the first."},
    {"resbm_train_epoch", Kind::kGauge, "", "Pass over the data that the last step belongs to, from 0."},
    {"resbm_train_loss", Kind::kGauge, "", "Mean loss of the last step that was applied."},
    {"resbm_train_learning_rate", Kind::kGauge, "", "Of the last step."},
    {"resbm_train_gradient_norm", Kind::kGauge, "", "Norm of the mean gradient of the last step, before clipping."},
    {"resbm_train_samples_total", Kind::kCounter, "", "Samples of all steps."},
    {"resbm_train_steps_total", Kind::kCounter, "decision",
     "Steps committed: \"apply\", or \"skip\" for a non-finite value."},
    {"resbm_train_step_seconds", Kind::kHistogram, "", "Wall time of a step, from the end of the one before."},
    {"resbm_train_evaluations_total", Kind::kCounter, "", "Evaluations on the test set."},
    {"resbm_train_evaluation_loss", Kind::kGauge, "", "Loss of the last evaluation."},
    {"resbm_train_evaluation_top1_ratio", Kind::kGauge, "", "Accuracy of the last evaluation, from 0 to 1."},
    {"resbm_train_waiting_ratio", Kind::kGauge, "",
     "Share of the stages' time in the last step that went into waiting for tensors: bubbles and links."},
    {"resbm_train_stage_phase_seconds_total", Kind::kCounter, "stage,phase",
     "Where the time of steps went: forward, backward, waiting_up, waiting_down, commit."},
    {"resbm_train_stage_utilization_ratio", Kind::kGauge, "stage",
     "Share of the last step's wall time that the stage computed."},
    {"resbm_train_stage_waiting_seconds", Kind::kGauge, "stage",
     "How long the stage had been waiting for a tensor when it said so last; absent while it does not wait."},
    {"resbm_train_stage_memory_peak_bytes", Kind::kGauge, "stage", "Peak memory of the last step."},
    {"resbm_train_boundary_payload_bytes_total", Kind::kCounter, "boundary,direction",
     "Tensors' bytes that crossed a cut in steps, as sent: activations or gradients."},
    {"resbm_train_boundary_metadata_bytes_total", Kind::kCounter, "boundary,direction",
     "Sent beside the payload: headers, checksums, gRPC's prefixes; not HTTP/2, TLS, IP."},
};

void AddStage(const RunSnapshot::Stage& stage, const std::string& name, metrics::Families* families) {
  const auto phase = [&](const char* phase_name, double seconds) {
    families->Set("resbm_train_stage_phase_seconds_total", seconds, {name, phase_name});
  };
  phase("forward", stage.times.forward_seconds());
  phase("backward", stage.times.backward_seconds());
  phase("waiting_up", stage.times.waiting_up_seconds());
  phase("waiting_down", stage.times.waiting_down_seconds());
  phase("commit", stage.times.commit_seconds());
  if (stage.waiting_seconds.has_value()) {
    families->Set("resbm_train_stage_waiting_seconds", *stage.waiting_seconds, {name});
  }
}

void AddCut(const RunSnapshot::Cut& cut, metrics::Families* families) {
  const auto add = [&](const char* metric, double activations, double gradients) {
    families->Set(metric, activations, {cut.boundary, "activations"});
    families->Set(metric, gradients, {cut.boundary, "gradients"});
  };
  add("resbm_train_boundary_payload_bytes_total", cut.activation_payload_bytes, cut.gradient_payload_bytes);
  add("resbm_train_boundary_metadata_bytes_total", cut.activation_metadata_bytes, cut.gradient_metadata_bytes);
}

}  // namespace

metrics::Catalogue RunMetricsCatalogue() { return kMetrics; }

std::vector<prometheus::MetricFamily> RunFamilies(const RunSnapshot& run) {
  metrics::Families families(kMetrics);
  families.Set("resbm_train_build_info", 1, {kVersion});
  families.Set("resbm_train_job_info", 1,
               {run.job_id, run.name, run.step.has_value() ? wire::FenceText(run.fence) : ""});
  families.Set("resbm_train_steps_planned", run.total_steps);
  families.Set("resbm_train_last_step", run.step.value_or(0));
  families.Set("resbm_train_samples_total", run.samples);
  families.Set("resbm_train_steps_total", run.applied_steps, {"apply"});
  families.Set("resbm_train_steps_total", run.skipped_steps, {"skip"});
  families.Set("resbm_train_step_seconds", run.step_seconds);
  families.Set("resbm_train_evaluations_total", run.evaluations);
  if (run.loss.has_value()) families.Set("resbm_train_loss", *run.loss);
  if (run.evaluation_loss.has_value()) families.Set("resbm_train_evaluation_loss", *run.evaluation_loss);
  if (run.evaluation_top1.has_value()) families.Set("resbm_train_evaluation_top1_ratio", *run.evaluation_top1);
  for (std::size_t k = 0; k < run.stages.size(); ++k) AddStage(run.stages[k], absl::StrCat(k), &families);
  for (const RunSnapshot::Cut& cut : run.cuts) AddCut(cut, &families);
  if (!run.step.has_value()) return families.Take();
  families.Set("resbm_train_epoch", run.epoch);
  families.Set("resbm_train_learning_rate", run.learning_rate);
  families.Set("resbm_train_gradient_norm", run.gradient_norm);
  families.Set("resbm_train_waiting_ratio", run.waiting_ratio);
  for (std::size_t k = 0; k < run.stages.size(); ++k) {
    families.Set("resbm_train_stage_utilization_ratio", run.stages[k].utilization, {absl::StrCat(k)});
    families.Set("resbm_train_stage_memory_peak_bytes", run.stages[k].peak_memory_bytes, {absl::StrCat(k)});
  }
  return families.Take();
}

}  // namespace resbm::coordinator
