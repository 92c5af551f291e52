#include "coordinator/report/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace resbm::coordinator {
namespace {

constexpr int kBarColumns = 24;
constexpr absl::Duration kRateWindow = absl::Seconds(10);
constexpr char kClearLine[] = "\r\x1b[K";

std::string Bar(double share) {
  const int full = std::clamp(static_cast<int>(share * kBarColumns), 0, kBarColumns);
  return absl::StrCat("[", std::string(full, '#'), std::string(kBarColumns - full, '.'), "] ");
}

}  // namespace

Progress::Progress(Options options, const Clock* clock, std::function<void(absl::string_view)> write)
    : options_(std::move(options)),
      clock_(clock),
      write_(std::move(write)),
      start_(clock_->Now()),
      recent_{{start_, 0}} {}

void Progress::Update(const State& state) {
  const absl::Duration now = clock_->Now();
  state_ = state;
  pending_ = true;
  recent_.emplace_back(now, state.units);
  // One older than the window stays, so that the rate spans all of it.
  while (recent_.size() > 2 && now - recent_[1].first >= kRateWindow) recent_.pop_front();
  const absl::Duration pause = options_.terminal.interactive ? options_.redraw : options_.line_every;
  if (!drawn_.has_value() || now - *drawn_ >= pause) Draw();
}

void Progress::Note(absl::string_view line) {
  if (options_.quiet) return;
  write_(absl::StrCat(line_open_ ? kClearLine : "", line, "\n"));
  const bool redraw = std::exchange(line_open_, false);
  if (redraw) Draw();
}

void Progress::Finish() {
  if (pending_) Draw();
  if (std::exchange(line_open_, false)) write_("\n");
}

void Progress::Draw() {
  drawn_ = clock_->Now();
  pending_ = false;
  if (options_.quiet) return;
  if (!options_.terminal.interactive) {
    write_(Line() + "\n");
    return;
  }
  const double share = options_.total_steps > 0 ? static_cast<double>(state_.step) / options_.total_steps : 0;
  std::string line = Line();
  // A line that fills the last column wraps, and would be there for ever.
  const std::size_t columns = static_cast<std::size_t>(std::max(options_.terminal.columns - 1, 1));
  if (line.size() + kBarColumns + 3 <= columns) line.insert(0, Bar(share));
  write_(absl::StrCat(kClearLine, line.substr(0, columns)));
  line_open_ = true;
}

std::optional<double> Progress::Rate() const {
  const auto& [first_time, first_units] = recent_.front();
  const auto& [last_time, last_units] = recent_.back();
  const double seconds = absl::ToDoubleSeconds(last_time - first_time);
  if (seconds <= 0) return std::nullopt;
  return static_cast<double>(last_units - first_units) / seconds;
}

std::string Progress::Line() const {
  const std::int64_t total = options_.total_steps;
  std::string line = absl::StrFormat("step %d", state_.step);
  if (total > 0) absl::StrAppendFormat(&line, "/%d", total);
  absl::StrAppendFormat(&line, "  epoch %d  loss %.4f", state_.epoch + 1, state_.loss);
  if (const std::optional<double> rate = Rate()) absl::StrAppendFormat(&line, "  %.1f %s/s", *rate, options_.unit);
  absl::StrAppendFormat(&line, "  waiting %.0f%%", 100 * state_.waiting_share);
  const std::int64_t done = state_.step - options_.first_step;
  if (total > 0 && done > 0) {
    const double elapsed = absl::ToDoubleSeconds(clock_->Now() - start_);
    absl::StrAppend(&line, "  ", FormatDuration(elapsed / done * std::max<std::int64_t>(total - state_.step, 0)),
                    " left");
  }
  return line;
}

}  // namespace resbm::coordinator
