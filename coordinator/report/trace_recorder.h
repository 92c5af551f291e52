// Makes trace.json of the steps of a run: holds what the stages report of a step until their clocks are known for the
// time of it, then writes it.
#ifndef RESBM_COORDINATOR_REPORT_TRACE_RECORDER_H_
#define RESBM_COORDINATOR_REPORT_TRACE_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "coordinator/report/trace_events.h"
#include "coordinator/report/trace_file.h"
#include "coordinator/run/clock_model.h"
#include "coordinator/run/clock_watch.h"
#include "proto/base/clock.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// For one thread.
class TraceRecorder {
 public:
  struct Options {
    std::string path;
    // Where the stages are, for their names.
    std::vector<std::string> addresses;
    // Steps 1 to this one are traced; below 0: all.
    std::int64_t steps = 0;
    // As ClockWatch::Options::ask.
    std::function<std::optional<absl::Duration>(int stage)> ask_clock;
    // Spans held at most; more are written with what is known of the clocks.
    std::size_t most_held = 200000;
  };

  // `clock` is the coordinator's, and outlives the recorder. Asks for the stages' clocks from now on, if anything is
  // to be traced.
  TraceRecorder(Options options, const Clock& clock);
  ~TraceRecorder();

  // A step has been committed, at `ended` after `took`. The file is made with the first. Never waits for a stage.
  // Errors as TraceFile; nothing is recorded after one.
  absl::Status OnStep(std::int64_t step, absl::Duration ended, absl::Duration took,
                      absl::Span<const v1::Computed> computed);
  // Writes what is held, when the clocks were asked for once more: that takes a moment. Once, after the last step.
  absl::Status Finish();

 private:
  bool traces(std::int64_t step) const { return options_.steps < 0 || step <= options_.steps; }
  absl::Status Hold(StepSpans step);
  // Of the oldest, as far as the clocks are known.
  absl::Status WriteHeld(bool all);
  std::string About() const;

  const Options options_;
  std::unique_ptr<ClockWatch> watch_;  // null: nothing is traced
  std::unique_ptr<TraceFile> file_;
  std::optional<TraceEvents> events_;
  std::vector<ClockModel> clocks_;
  std::vector<absl::Duration> clock_errors_;  // the largest that anything was written with
  std::deque<StepSpans> held_;
  std::size_t held_spans_ = 0;
  std::int64_t written_steps_ = 0;
  bool failed_ = false;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_TRACE_RECORDER_H_
