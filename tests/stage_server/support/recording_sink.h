// A control stream that keeps what it was sent, for a thread that waits for it.
#ifndef RESBM_TESTS_STAGE_SERVER_SUPPORT_RECORDING_SINK_H_
#define RESBM_TESTS_STAGE_SERVER_SUPPORT_RECORDING_SINK_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "stage_server/host/session_sink.h"

namespace resbm::stage_server::testing {

class RecordingSink : public SessionSink {
 public:
  void Send(const v1::ControlEvent& event) override {
    MutexLock lock(mutex_);
    if (event.has_progress()) {
      progress_ = event.progress();
      ++progresses_;
    } else {
      events_.push_back(event);
    }
    changed_.NotifyAll();
  }
  void End(const absl::Status& status) override {
    MutexLock lock(mutex_);
    if (!end_.has_value()) end_ = status;
    changed_.NotifyAll();
  }

  // The next event that is not Progress; nullopt if the stream has ended, or nothing came for a minute.
  std::optional<v1::ControlEvent> Next() {
    MutexLock lock(mutex_);
    while (next_ == events_.size() && !end_.has_value()) {
      if (!changed_.WaitFor(mutex_, absl::Minutes(1))) return std::nullopt;
    }
    if (next_ == events_.size()) return std::nullopt;
    return events_[next_++];
  }
  // A Progress that comes from now on and that `wanted` accepts; nullopt if none does within a minute.
  template <typename Wanted>
  std::optional<v1::Progress> WaitForProgress(Wanted wanted) {
    MutexLock lock(mutex_);
    const absl::Duration end = Clock::Real().Now() + absl::Minutes(1);
    for (std::size_t seen = progresses_;;) {
      while (progresses_ == seen) {
        if (!changed_.WaitFor(mutex_, end - Clock::Real().Now())) return std::nullopt;
      }
      seen = progresses_;
      if (wanted(progress_)) return progress_;
      if (Clock::Real().Now() > end) return std::nullopt;
    }
  }
  std::optional<absl::Status> WaitForEnd() {
    MutexLock lock(mutex_);
    while (!end_.has_value()) {
      if (!changed_.WaitFor(mutex_, absl::Minutes(1))) break;
    }
    return end_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<v1::ControlEvent> events_ RESBM_GUARDED_BY(mutex_);
  std::size_t next_ RESBM_GUARDED_BY(mutex_) = 0;
  v1::Progress progress_ RESBM_GUARDED_BY(mutex_);
  std::size_t progresses_ RESBM_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Status> end_ RESBM_GUARDED_BY(mutex_);
};

}  // namespace resbm::stage_server::testing

#endif  // RESBM_TESTS_STAGE_SERVER_SUPPORT_RECORDING_SINK_H_
