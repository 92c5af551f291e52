// std::mutex with Clang's thread-safety attributes (libstdc++ has none, and ThreadSanitizer understands
// std::mutex but not an uninstrumented absl::Mutex). `--config=clang` checks the annotations.
#ifndef RESBM_PROTO_BASE_MUTEX_H_
#define RESBM_PROTO_BASE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

#if defined(__clang__)
#define RESBM_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define RESBM_THREAD_ATTRIBUTE(x)
#endif
#define RESBM_CAPABILITY(x) RESBM_THREAD_ATTRIBUTE(capability(x))
#define RESBM_SCOPED_CAPABILITY RESBM_THREAD_ATTRIBUTE(scoped_lockable)
#define RESBM_GUARDED_BY(x) RESBM_THREAD_ATTRIBUTE(guarded_by(x))
#define RESBM_REQUIRES(...) RESBM_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define RESBM_EXCLUDES(...) RESBM_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define RESBM_ACQUIRE(...) RESBM_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RESBM_RELEASE(...) RESBM_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))

namespace resbm {

class RESBM_CAPABILITY("mutex") Mutex {
 public:
  void lock() RESBM_ACQUIRE() { mutex_.lock(); }
  void unlock() RESBM_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class RESBM_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) RESBM_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RESBM_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits with the Mutex held: while (!ready_) changed_.Wait(mutex_);
class CondVar {
 public:
  void Wait(Mutex& mutex) RESBM_REQUIRES(mutex) { condition_.wait(mutex); }
  // Returns after `timeout` at the latest; false if it ran out.
  bool WaitFor(Mutex& mutex, absl::Duration timeout) RESBM_REQUIRES(mutex) {
    if (timeout == absl::InfiniteDuration()) {
      condition_.wait(mutex);
      return true;
    }
    return condition_.wait_for(mutex, absl::ToChronoNanoseconds(timeout)) == std::cv_status::no_timeout;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace resbm

#endif  // RESBM_PROTO_BASE_MUTEX_H_
