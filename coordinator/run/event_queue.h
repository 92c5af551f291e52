// Brings what other threads learn to the one thread that runs the driver.
#ifndef RESBM_COORDINATOR_RUN_EVENT_QUEUE_H_
#define RESBM_COORDINATOR_RUN_EVENT_QUEUE_H_

#include <deque>
#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "proto/base/mutex.h"

namespace resbm::coordinator {

// Closures in the order in which they were posted. Thread-safe.
class EventQueue {
 public:
  using Event = std::function<void()>;

  void Post(Event event) RESBM_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    events_.push_back(std::move(event));
    changed_.NotifyOne();
  }

  // All events there are; waits for the first, at most for `timeout`.
  std::deque<Event> PopAll(absl::Duration timeout) RESBM_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (events_.empty() && timeout > absl::ZeroDuration()) changed_.WaitFor(mutex_, timeout);
    return std::exchange(events_, {});
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<Event> events_ RESBM_GUARDED_BY(mutex_);
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_EVENT_QUEUE_H_
