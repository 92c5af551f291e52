// Where a run is: a bar that is redrawn on a terminal, plain lines in a pipe.
#ifndef RESBM_COORDINATOR_REPORT_PROGRESS_H_
#define RESBM_COORDINATOR_REPORT_PROGRESS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coordinator/report/terminal.h"
#include "proto/base/clock.h"

namespace resbm::coordinator {

// For one thread.
class Progress {
 public:
  struct Options {
    Terminal terminal;
    bool quiet = false;  // nothing at all
    // The run's; 0 = not known.
    std::int64_t total_steps = 0;
    // Steps that were there before (a resumed run): not counted in the time left.
    std::int64_t first_step = 0;
    // What the rate counts.
    std::string unit = "samples";
    // How often at most: a terminal's bar, a pipe's lines.
    absl::Duration redraw = absl::Milliseconds(100);
    absl::Duration line_every = absl::Seconds(5);
  };

  struct State {
    std::int64_t step = 0;   // the last that was committed, from 1
    std::int64_t epoch = 0;  // of the data, from 0
    double loss = 0;         // of that step
    std::int64_t units = 0;  // samples or tokens, since this life of the run began
    // Of the stages' time in that step.
    double waiting_share = 0;
  };

  // `write` takes what goes to stderr; `clock` outlives this.
  Progress(Options options, const Clock* clock, std::function<void(absl::string_view)> write);

  // After each step. Draws no more often than the options say.
  void Update(const State& state);
  // A line of its own ("epoch 1: validation loss 0.41"), above the bar. Without line end.
  void Note(absl::string_view line);
  // Draws the last state if that was not done, and leaves the line. Once.
  void Finish();

 private:
  void Draw();
  std::string Line() const;
  // Units a second over the last 10 s; absent while there are fewer than two states.
  std::optional<double> Rate() const;

  const Options options_;
  const Clock* const clock_;
  const std::function<void(absl::string_view)> write_;
  const absl::Duration start_;
  State state_;
  bool pending_ = false;  // state_ was not drawn
  std::optional<absl::Duration> drawn_;
  bool line_open_ = false;  // the cursor is behind a bar
  std::deque<std::pair<absl::Duration, std::int64_t>> recent_;  // (time, units)
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_PROGRESS_H_
