#include "coordinator/report/trace_recorder.h"

#include <algorithm>
#include <utility>

#include "nlohmann/json.hpp"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

// A stage server of ours sends one less, and one for the commit before; what another sends beyond it is left out.
constexpr int kMostSpansOfAStage = 16385;

}  // namespace

TraceRecorder::TraceRecorder(Options options, const Clock& clock) : options_(std::move(options)) {
  if (options_.steps == 0) return;
  ClockWatch::Options watch;
  watch.stages = static_cast<int>(options_.addresses.size());
  watch.ask = options_.ask_clock;
  watch_ = std::make_unique<ClockWatch>(std::move(watch), clock);
  clocks_.resize(options_.addresses.size());
  clock_errors_.resize(options_.addresses.size());
}

TraceRecorder::~TraceRecorder() = default;

absl::Status TraceRecorder::OnStep(std::int64_t step, absl::Duration ended, absl::Duration took,
                                   absl::Span<const v1::Computed> computed) {
  if (watch_ == nullptr || failed_) return absl::OkStatus();
  absl::Status status;
  if (traces(step)) {
    StepSpans traced;
    traced.step = step;
    traced.ended = ended;
    traced.began = ended - took;
    for (const v1::Computed& stage : computed) {
      const int most = std::min(stage.spans_size(), kMostSpansOfAStage);
      traced.spans.emplace_back(stage.spans().begin(), stage.spans().begin() + most);
    }
    status = Hold(std::move(traced));
    if (!traces(step + 1)) watch_->Finish();
  }
  if (status.ok()) status = WriteHeld(held_spans_ > options_.most_held);
  failed_ = !status.ok();
  if (failed_) watch_->Finish();
  return status;
}

absl::Status TraceRecorder::Hold(StepSpans step) {
  if (file_ == nullptr) {
    const auto [first, rest] = TraceEvents::Names(options_.addresses);
    RESBM_ASSIGN_OR_RETURN(file_, TraceFile::Create(options_.path, first));
    RESBM_RETURN_IF_ERROR(file_->Add(rest, About()));
    events_.emplace(static_cast<int>(options_.addresses.size()), step.began);
  }
  for (const auto& spans : step.spans) held_spans_ += spans.size();
  held_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status TraceRecorder::WriteHeld(bool all) {
  if (held_.empty()) return absl::OkStatus();
  if (!all && watch_->known_until() < held_.front().ended) return absl::OkStatus();
  clocks_ = watch_->models();
  absl::Duration known = absl::InfiniteDuration();
  for (std::size_t s = 0; s < clocks_.size(); ++s) {
    known = std::min(known, clocks_[s].known_until());
    clock_errors_[s] = std::max(clock_errors_[s], clocks_[s].error_bound());
  }
  std::string events;
  while (!held_.empty() && (all || held_.front().ended <= known)) {
    events += events_->Of(held_.front(), clocks_);
    for (const auto& spans : held_.front().spans) held_spans_ -= spans.size();
    held_.pop_front();
    ++written_steps_;
  }
  return file_->Add(events, About());
}

absl::Status TraceRecorder::Finish() {
  if (watch_ == nullptr || failed_) return absl::OkStatus();
  watch_->Finish();
  if (held_.empty()) return absl::OkStatus();
  watch_->Wait();
  const absl::Status status = WriteHeld(/*all=*/true);
  failed_ = !status.ok();
  return status;
}

std::string TraceRecorder::About() const {
  nlohmann::ordered_json about = {
      {"producer", "resbm"}, {"stages", options_.addresses.size()}, {"steps", written_steps_}};
  // Null: not known, so that the stage has no spans here.
  nlohmann::ordered_json errors = nlohmann::ordered_json::array();
  for (std::size_t s = 0; s < clocks_.size(); ++s) {
    errors.push_back(clocks_[s].known() ? nlohmann::ordered_json(absl::ToDoubleMicroseconds(clock_errors_[s]))
                                        : nlohmann::ordered_json());
  }
  about["clock_error_us"] = std::move(errors);
  return about.dump();
}

}  // namespace resbm::coordinator
