// Spans as stages report them, for tests of what is made of them.
#ifndef RESBM_TESTS_COORDINATOR_REPORT_SPANS_H_
#define RESBM_TESTS_COORDINATOR_REPORT_SPANS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "coordinator/run/clock_model.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

inline v1::Span SpanOf(v1::Span::Kind kind, v1::Direction direction, std::uint32_t micro_batch, absl::Duration began,
                       absl::Duration took, std::uint64_t bytes = 0, std::uint32_t tensor = 0) {
  v1::Span span;
  span.set_kind(kind);
  span.set_direction(direction);
  span.set_micro_batch(micro_batch);
  span.set_tensor_index(tensor);
  span.set_start_nanos(absl::ToInt64Nanoseconds(began));
  span.set_duration_nanos(absl::ToInt64Nanoseconds(took));
  span.set_bytes(bytes);
  return span;
}

// A clock that shows `ahead` more than ours, known exactly.
inline ClockModel ClockAhead(absl::Duration ahead) {
  ClockModel model;
  const ClockExchange exchange = {absl::ZeroDuration(), ahead, absl::ZeroDuration()};
  model.AddRound({&exchange, 1});
  return model;
}

}  // namespace resbm::coordinator

#endif  // RESBM_TESTS_COORDINATOR_REPORT_SPANS_H_
