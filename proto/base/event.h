// Something that happens once.
#ifndef RESBM_PROTO_BASE_EVENT_H_
#define RESBM_PROTO_BASE_EVENT_H_

#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"

namespace resbm {

// Any thread. absl::Notification does the same, but ThreadSanitizer does not see into Debian's Abseil.
class Event {
 public:
  void Set() {
    MutexLock lock(mutex_);
    set_ = true;
    changed_.NotifyAll();
  }
  void Wait() {
    MutexLock lock(mutex_);
    while (!set_) changed_.Wait(mutex_);
  }
  // True as soon as it is set, false after `timeout`.
  bool WaitFor(absl::Duration timeout) {
    const absl::Duration end = Clock::Real().Now() + timeout;
    MutexLock lock(mutex_);
    while (!set_) {
      const absl::Duration left = end - Clock::Real().Now();
      if (left <= absl::ZeroDuration()) return false;
      changed_.WaitFor(mutex_, left);
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ RESBM_GUARDED_BY(mutex_) = false;
};

}  // namespace resbm

#endif  // RESBM_PROTO_BASE_EVENT_H_
