#include "coordinator/cli/run_recorder.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "proto/base/clock.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

// A stage that takes longer to say what time it is says nothing of use.
constexpr absl::Duration kClockPatience = absl::Seconds(1);

TraceRecorder::Options TraceOf(const RunSetup& setup, Fleet* fleet, const std::string& path) {
  TraceRecorder::Options options;
  options.path = path;
  options.steps = setup.plan.trace_steps;
  for (int s = 0; s < fleet->size(); ++s) options.addresses.push_back(fleet->stage(s).address());
  options.ask_clock = [fleet](int stage) -> std::optional<absl::Duration> {
    const auto description = fleet->stage(stage).Describe(kClockPatience);
    if (!description.ok() || description->clock_nanos() == 0) return std::nullopt;
    return absl::Nanoseconds(description->clock_nanos());
  };
  return options;
}

// Markdown's literal text.
std::string Literal(const std::string& text) {
  return absl::StrCat("    ", absl::StrReplaceAll(text, {{"\n", "\n    "}}));
}

}  // namespace

RunRecorder::RunRecorder(const RunSetup& setup, Fleet* fleet, Options options)
    : setup_(setup), options_(std::move(options)), trace_(TraceOf(setup, fleet, options_.trace_path), Clock::Real()) {}

void RunRecorder::GiveUp(const char* what, const absl::Status& status) {
  options_.note(absl::StrCat(what, " is not written any more: ", status.message()));
}

void RunRecorder::Board(const std::function<absl::Status()>& write) {
  if (board_failed_) return;
  const auto all = [&]() -> absl::Status {
    if (board_ == nullptr) {
      RESBM_ASSIGN_OR_RETURN(board_, TensorboardWriter::Create(options_.directory, absl::Now()));
      RESBM_RETURN_IF_ERROR(board_->AddText(0, absl::Now(), "job", Literal(options_.job_text)));
    }
    return write();
  };
  if (const absl::Status status = all(); !status.ok()) {
    board_failed_ = true;
    GiveUp("TensorBoard's event file", status);
  }
}

TensorboardWriter::Scalars RunRecorder::ScalarsOf(const StepReport& report) const {
  const double seconds = absl::ToDoubleSeconds(report.duration);
  TensorboardWriter::Scalars scalars = {
      {"loss", report.decision.loss},
      {"learning_rate", report.learning_rate},
      {"step_seconds", seconds},
      {"waiting_share", report.waiting_share()},
  };
  if (seconds > 0) {
    scalars.emplace_back("samples_per_second", static_cast<double>(report.shape.samples()) / seconds);
    if (setup_.is_text()) scalars.emplace_back("tokens_per_second", report.shape.total_weight() / seconds);
  }
  if (std::isfinite(report.decision.gradient_norm)) {
    scalars.emplace_back("gradient_norm", report.decision.gradient_norm);
  }
  for (std::size_t k = 0; k + 1 < report.computed.size(); ++k) {
    const std::string cut = setup_.model.boundaries[setup_.partition.cuts[k]].cut_point();
    const v1::LinkBytes& down = report.computed[k].bytes();
    const v1::LinkBytes& up = report.computed[k + 1].bytes();
    scalars.emplace_back(absl::StrCat("bytes/", cut, "/activations"), down.down_payload() + down.down_metadata());
    scalars.emplace_back(absl::StrCat("bytes/", cut, "/gradients"), up.up_payload() + up.up_metadata());
  }
  for (const v1::Computed& computed : report.computed) {
    for (const v1::Signal& signal : computed.signals()) {
      scalars.emplace_back(absl::StrCat("signals/", signal.cut_point(), "/", signal.name()), signal.value());
    }
  }
  return scalars;
}

void RunRecorder::OnStep(const StepReport& report) {
  if (const absl::Status status = trace_.OnStep(report.step, report.ended, report.duration, report.computed);
      !status.ok()) {
    GiveUp("the trace", status);
  }
  Board([&] { return board_->AddScalars(report.step, absl::Now(), ScalarsOf(report)); });
}

void RunRecorder::OnEvaluation(const EvaluationReport& report) {
  TensorboardWriter::Scalars scalars = {{"evaluation/loss", report.loss}, {"evaluation/top1", report.top1}};
  if (setup_.is_text()) scalars.emplace_back("evaluation/perplexity", std::exp(report.loss));
  Board([&] { return board_->AddScalars(report.after_step, absl::Now(), scalars); });
}

void RunRecorder::Finish() {
  if (const absl::Status status = trace_.Finish(); !status.ok()) GiveUp("the trace", status);
}

}  // namespace resbm::coordinator
