#include "coordinator/run/clock_watch.h"

#include <algorithm>
#include <utility>

namespace resbm::coordinator {

ClockWatch::ClockWatch(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock), models_(options_.stages), thread_([this] { Run(); }) {}

ClockWatch::~ClockWatch() {
  {
    MutexLock lock(mutex_);
    stopping_ = finishing_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

std::vector<ClockModel> ClockWatch::models() const {
  MutexLock lock(mutex_);
  return models_;
}

absl::Duration ClockWatch::known_until() const {
  absl::Duration known = absl::InfiniteDuration();
  MutexLock lock(mutex_);
  for (const ClockModel& model : models_) known = std::min(known, model.known_until());
  return known;
}

void ClockWatch::Finish() {
  MutexLock lock(mutex_);
  finishing_ = true;
  changed_.NotifyAll();
}

void ClockWatch::Wait() {
  MutexLock lock(mutex_);
  while (!finished_) changed_.Wait(mutex_);
}

void ClockWatch::Run() {
  for (;;) {
    bool last = false;
    {
      MutexLock lock(mutex_);
      last = finishing_;
    }
    for (int s = 0; s < options_.stages; ++s) {
      {
        MutexLock lock(mutex_);
        if (stopping_) break;
      }
      const std::vector<ClockExchange> round =
          AskForClock(clock_, options_.exchanges, [this, s] { return options_.ask(s); });
      MutexLock lock(mutex_);
      models_[s].AddRound(round);
    }
    MutexLock lock(mutex_);
    if (last || stopping_) {
      finished_ = true;
      changed_.NotifyAll();
      return;
    }
    const absl::Duration due = clock_.Now() + options_.period;
    while (!finishing_) {
      const absl::Duration left = due - clock_.Now();
      if (left <= absl::ZeroDuration() || !changed_.WaitFor(mutex_, left)) break;
    }
  }
}

}  // namespace resbm::coordinator
