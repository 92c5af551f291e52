// RunDriver's sense of time: how long it waits for what, and whom it blames when that was too long.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "coordinator/run/blame.h"
#include "coordinator/run/run_driver.h"

namespace resbm::coordinator {
namespace {

// A peer hears nothing of a process that is stopped, and hangs up after its keepalive (40 s).
constexpr absl::Duration kLongStandstill = absl::Seconds(20);
constexpr absl::Duration kStandstillEcho = absl::Seconds(10);

}  // namespace

void RunDriver::ExpectAnswers(absl::Duration within) {
  for (Stage& s : stages_) s.answered = false;
  answers_due_ = within == absl::ZeroDuration() ? absl::InfiniteDuration() : clock_->Now() + within;
}

absl::Duration RunDriver::StallLimit() const {
  if (plan_.timeouts.stall != absl::ZeroDuration()) return plan_.timeouts.stall;
  if (durations_.empty()) return absl::Seconds(60);
  // The median of the last steps is enough, and cheap.
  std::vector<absl::Duration> recent(durations_.end() - std::min<std::ptrdiff_t>(durations_.size(), 31), durations_.end());
  std::nth_element(recent.begin(), recent.begin() + recent.size() / 2, recent.end());
  return std::max(absl::Seconds(60), 10 * recent[recent.size() / 2]);
}

absl::Duration RunDriver::NextDeadline() const {
  if (finished() || phase_ == Phase::kIdle) return absl::InfiniteDuration();
  absl::Duration due = answers_due_;
  if (phase_ == Phase::kStepping || phase_ == Phase::kEvaluating) due = std::min(due, progressed_ + StallLimit());
  return due;
}

void RunDriver::OnTimer() {
  if (finished() || phase_ == Phase::kIdle) return;
  const absl::Duration now = clock_->Now();
  if (now >= answers_due_ && (phase_ == Phase::kAttaching || phase_ == Phase::kLoading)) {
    for (int s = 0; s < stages(); ++s) {
      if (stages_[s].answered) continue;
      Fail(absl::DeadlineExceededError(
          phase_ == Phase::kAttaching
              ? absl::StrFormat("%s did not answer within timeouts.attach_seconds (%s); is its stage server running and "
                                "reachable from here?",
                                Name(s), absl::FormatDuration(plan_.timeouts.attach))
              : absl::StrFormat("%s was not ready within timeouts.load_seconds (%s)", Name(s),
                                absl::FormatDuration(plan_.timeouts.load))));
      return;
    }
  }
  if (now >= answers_due_ || ((phase_ == Phase::kStepping || phase_ == Phase::kEvaluating) && now >= progressed_ + StallLimit())) {
    Stalled();
  }
}

void RunDriver::Stalled() {
  const absl::Duration now = clock_->Now();
  std::vector<StageSign> signs;
  for (const Stage& s : stages_) {
    // Computed or Evaluated; or Committed where nothing follows. Such a stage is silent for good reason.
    const bool done = phase_ == Phase::kEvaluating ? s.answered
                                                   : s.computed.has_value() || (decided_ == step_ && s.committed == step_);
    signs.push_back({now - s.heard, s.waiting_for, done});
  }
  const Blame blame = FindBlame(signs);
  std::string who = Name(blame.stage);
  if (blame.stage < 0) who = "the coordinator's link to stage 0";
  if (blame.stage >= stages()) who = absl::StrFormat("the coordinator's link to stage %d", stages() - 1);
  const std::string task = phase_ == Phase::kEvaluating ? absl::StrFormat("the evaluation after step %d", committed_)
                                                        : absl::StrFormat("step %d", step_);
  const bool by_step = now >= answers_due_;
  Fail(absl::DeadlineExceededError(absl::StrFormat(
      "%s made no progress for %s (%s): %s holds it up: %s", task,
      absl::FormatDuration(by_step ? plan_.timeouts.step : StallLimit()),
      by_step ? "timeouts.step_seconds" : "timeouts.stall_seconds", who, blame.reason)));
}

void RunDriver::OnStandstill(absl::Duration lost) {
  if (finished()) return;
  const absl::Duration now = clock_->Now();
  answers_due_ += lost;
  progressed_ = std::min(progressed_ + lost, now);
  for (Stage& s : stages_) s.heard = std::min(s.heard + lost, now);
  standstill_ = lost;
  standstill_end_ = now;
}

std::string RunDriver::StandstillNote() const {
  if (standstill_ < kLongStandstill || clock_->Now() - standstill_end_ > kStandstillEcho) return "";
  return absl::StrFormat("; this coordinator stood still for %.0f s just before (suspended?), so its peers hung up",
                         absl::ToDoubleSeconds(standstill_));
}

}  // namespace resbm::coordinator
