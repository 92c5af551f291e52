// From the spans that stages report to events of a Chrome trace, on one clock.
//
// A stage is a process of the trace, numbered as the stage; the coordinator is the one after the last. Threads of a
// stage: what it computes and waits for, and each direction of its two links. An arrow leads from a tensor's sending
// to its receiving.
#ifndef RESBM_COORDINATOR_REPORT_TRACE_EVENTS_H_
#define RESBM_COORDINATOR_REPORT_TRACE_EVENTS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "coordinator/run/clock_model.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// What was traced of a committed step.
struct StepSpans {
  std::int64_t step = 0;
  // On the coordinator's clock.
  absl::Duration began;
  absl::Duration ended;
  std::vector<std::vector<v1::Span>> spans;  // by stage
};

// For one thread; steps in order.
class TraceEvents {
 public:
  // Threads of a stage.
  static constexpr int kCompute = 0, kSendDown = 1, kReceiveDown = 2, kSendUp = 3, kReceiveUp = 4;
  static constexpr int kThreads = 5;

  // The trace's time 0 is `zero`, of the coordinator's clock.
  TraceEvents(int stages, absl::Duration zero);

  // Names of processes and threads; the first event, and the others each after ",\n".
  static std::pair<std::string, std::string> Names(const std::vector<std::string>& addresses);

  // Each event after ",\n". Spans of a stage whose clock is not known are left out. Where two spans of a thread would
  // overlap, the later begins when the earlier ends: a tensor is on its way from when those before it have left
  // (args.queued_us: how long it was ready before).
  std::string Of(const StepSpans& step, absl::Span<const ClockModel> clocks);

 private:
  // In nanoseconds of the trace.
  struct Slice {
    std::int64_t begin = 0, end = 0;
    std::int64_t queued = 0;
    const v1::Span* span = nullptr;
  };
  // Boundary after a stage, whether down, micro-batch, tensor.
  using TensorKey = std::tuple<int, bool, std::uint32_t, std::uint32_t>;
  // Where an arrow begins or ends.
  struct Point {
    int stage = 0;
    int thread = 0;
    std::int64_t time = 0;
  };

  std::int64_t TimeOf(absl::Duration time) const;
  void AddThread(int stage, int thread, std::int64_t step, std::vector<Slice> slices, std::string* events);
  void AddArrows(std::string* events);

  const int stages_;
  const absl::Duration zero_;
  std::vector<std::array<std::int64_t, kThreads>> busy_until_;  // by stage and thread
  std::uint64_t arrows_ = 0;
  // Of the step in work.
  std::map<TensorKey, Point> sent_, received_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_TRACE_EVENTS_H_
