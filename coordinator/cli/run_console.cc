#include "coordinator/cli/run_console.h"

#include <unistd.h>

#include <cmath>
#include <iostream>
#include <numbers>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coordinator/report/table.h"
#include "coordinator/report/terminal.h"
#include "proto/base/clock.h"
#include "proto/base/status.h"
#include "proto/base/version.h"

namespace resbm::coordinator {

std::string DescribeEvaluation(const EvaluationReport& report, bool is_text) {
  const double top1 = 100 * report.top1;
  if (!is_text) return absl::StrFormat("loss %.4f, top-1 %.2f %% on %d samples", report.loss, top1, report.samples);
  return absl::StrFormat("loss %.4f, %.4f bits/byte, perplexity %.3f, top-1 %.2f %% on %d bytes", report.loss,
                         report.loss / std::numbers::ln2, std::exp(report.loss), top1, report.samples);
}

absl::StatusOr<std::unique_ptr<RunConsole>> RunConsole::Create(const RunSetup& setup, Fleet* fleet,
                                                               const OutputOptions& output,
                                                               const std::string& metrics_path) {
  auto console = std::unique_ptr<RunConsole>(new RunConsole());
  console->verbose_ = output.verbose;
  console->is_text_ = setup.is_text();

  RunStatistics::Options statistics;
  statistics.name = setup.job.name();
  statistics.started = absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
  statistics.version = kVersion;
  for (int s = 0; s < setup.stages(); ++s) {
    const v1::DescribeReply& stage = fleet->description(s);
    statistics.stages.push_back(
        {stage.device(),
         static_cast<std::int64_t>(StageParameters(setup, s)),
         {stage.server_version(), stage.device_name(), stage.libtorch_version(), stage.cpu_capability()}});
  }
  for (int cut : setup.partition.cuts) statistics.cuts.push_back(setup.model.boundaries[cut]);
  statistics.windows = setup.windows;
  statistics.steps_per_epoch = setup.batches->steps_per_epoch();
  statistics.is_text = setup.is_text();
  console->statistics_ = std::make_unique<RunStatistics>(std::move(statistics));

  if (!metrics_path.empty()) {
    RESBM_ASSIGN_OR_RETURN(console->metrics_, MetricsWriter::Open(metrics_path));
  }
  Progress::Options progress;
  progress.terminal = DetectTerminal(STDERR_FILENO, output.no_color);
  progress.quiet = output.quiet;
  progress.total_steps = setup.plan.total_steps;
  if (setup.is_text()) progress.unit = "tokens";
  console->progress_ = std::make_unique<Progress>(progress, &Clock::Real(), [](absl::string_view text) {
    std::cerr << text << std::flush;
  });
  return console;
}

absl::Status RunConsole::OnStep(const StepReport& report) {
  const bool skipped = report.decision.decision == v1::Commit::SKIP;
  const double seconds = absl::ToDoubleSeconds(report.duration);
  const std::int64_t samples = report.shape.samples();
  const std::int64_t weight = std::llround(report.shape.total_weight());
  units_ += weight;
  if (metrics_ != nullptr) {
    MetricsRow row;
    row.step = report.step;
    row.loss = report.decision.loss;
    row.samples = samples;
    if (is_text_) row.tokens = weight;
    row.step_seconds = seconds;
    row.learning_rate = report.learning_rate;
    row.skipped = skipped;
    row.fence_epoch = report.fence.epoch();
    row.fence_generation = report.fence.generation();
    row.epoch = report.shape.epoch;
    row.grad_norm = report.decision.gradient_norm;
    for (const v1::Computed& computed : report.computed) {
      for (const v1::Signal& signal : computed.signals()) row.signals[signal.cut_point()][signal.name()] = signal.value();
    }
    if (!skipped) recent_.Add(report.step, row.loss);
    row.loss_slope = recent_.slope();
    row.loss_spike = !skipped && recent_.spike();
    row.non_finite = report.decision.reasons;
    RESBM_RETURN_IF_ERROR(metrics_->Write(row));
  }
  StepStatistics step;
  step.epoch = report.shape.epoch;
  step.samples = samples;
  step.weight = report.shape.total_weight();
  step.micro_batches = static_cast<int>(report.shape.micro_batches.size());
  step.seconds = seconds;
  step.loss = report.decision.loss;
  step.skipped = skipped;
  step.computed = report.computed;
  statistics_->AddStep(step);

  if (skipped) {
    progress_->Note(absl::StrFormat("step %d is skipped: %s", report.step, absl::StrJoin(report.decision.reasons, "; ")));
  }
  Progress::State state;
  state.step = report.step;
  state.epoch = report.shape.epoch;
  state.loss = report.decision.loss;
  state.units = units_;
  state.waiting_share = report.waiting_share();
  progress_->Update(state);
  return absl::OkStatus();
}

absl::Status RunConsole::OnEvaluation(const EvaluationReport& report) {
  statistics_->AddEvaluation(
      {report.after_step, report.loss, report.top1, report.samples, absl::ToDoubleSeconds(report.duration)});
  progress_->Note(absl::StrFormat("after step %d: test %s, %.1f s", report.after_step,
                                  DescribeEvaluation(report, is_text_), absl::ToDoubleSeconds(report.duration)));
  return absl::OkStatus();
}

void RunConsole::OnProgress(int stage, const v1::Progress& p) {
  if (!verbose_ || !p.has_waiting_for() || p.waiting_for().seconds() < 5) return;
  progress_->Note(absl::StrFormat("stage %d has waited %.0f s for micro-batch %d from %s%s", stage,
                                  p.waiting_for().seconds(), p.waiting_for().micro_batch(),
                                  p.waiting_for().direction() == v1::UP ? "above" : "below",
                                  p.waiting_for().link_connected() ? "" : ", whose link is not connected"));
}

void RunConsole::Finish() {
  progress_->Finish();
  // Rows are the system's already; a full disk was said at the row.
  if (metrics_ != nullptr) (void)metrics_->Sync();
}

void PrintSummary(const Summary& summary, const OutputOptions& output) {
  if (output.json) {
    std::cout << ToJson(summary) << std::flush;
  } else {
    std::cout << FormatTable(summary, DetectTerminal(STDOUT_FILENO, output.no_color)) << std::flush;
  }
}

}  // namespace resbm::coordinator
