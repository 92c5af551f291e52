// Time as a dependency. Core logic asks a Clock, so that tests and the simulation decide what time it is.
#ifndef RESBM_PROTO_BASE_CLOCK_H_
#define RESBM_PROTO_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace resbm {

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic; only differences mean something. Any thread.
  virtual absl::Duration Now() const = 0;

  // The machine's. Lives for ever.
  static const Clock& Real();
};

// Goes on only when told to. For one thread.
class FakeClock : public Clock {
 public:
  absl::Duration Now() const override { return now_; }
  void Advance(absl::Duration by) { now_ += by; }

 private:
  absl::Duration now_ = absl::ZeroDuration();
};

}  // namespace resbm

#endif  // RESBM_PROTO_BASE_CLOCK_H_
