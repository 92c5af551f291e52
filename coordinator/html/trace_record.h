// trace.json as a report needs it: what the stages did in the steps that were traced.
#ifndef RESBM_COORDINATOR_HTML_TRACE_RECORD_H_
#define RESBM_COORDINATOR_HTML_TRACE_RECORD_H_

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace resbm::coordinator {

// What a row of a stage's timeline holds: tid of the trace.
enum class TraceLane : int { kCompute = 0, kSendDown = 1, kReceiveDown = 2, kSendUp = 3, kReceiveUp = 4 };

struct TraceSpan {
  int stage = 0;
  TraceLane lane = TraceLane::kCompute;
  std::string name;      // "F3", "wait up"
  std::string category;  // "forward", "backward", "wait", "send", "receive", "commit", "finish"
  std::int64_t step = 0;
  std::int64_t micro_batch = -1;  // from 0; -1: of none
  std::int64_t bytes = 0;         // payload of SEND and RECEIVE; 0: not known
  double start_us = 0;            // since the start of the first step
  double duration_us = 0;

  friend bool operator==(const TraceSpan&, const TraceSpan&) = default;
};

struct TracedStep {
  std::int64_t step = 0;
  double start_us = 0;
  double duration_us = 0;

  friend bool operator==(const TracedStep&, const TracedStep&) = default;
};

struct TraceRecord {
  std::vector<TracedStep> steps;  // ascending, each once, with spans
  std::vector<TraceSpan> spans;   // of these steps
  int stages = 0;
};

// Chrome trace format: an object with traceEvents. Any text is safe; of events that no stage's timeline has (metadata,
// flows, other processes) nothing is kept, and little is read beyond the first `max_spans`; a step that has spans
// beyond is left out. INVALID_ARGUMENT: not JSON, or not of that form.
absl::StatusOr<TraceRecord> ParseTrace(std::istream& json, std::size_t max_spans = 200'000);

// Those to draw: the step of median duration among all but the first (which warms up), and its neighbours, at most
// `max_steps` with at most `max_spans` spans together, but one at least. Empty where there are no steps.
std::vector<TracedStep> TypicalSteps(const TraceRecord& trace, int max_steps, std::size_t max_spans);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_HTML_TRACE_RECORD_H_
