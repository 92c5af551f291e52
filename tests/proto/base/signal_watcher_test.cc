#include "proto/base/signal_watcher.h"

#include <signal.h>
#include <unistd.h>

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/base/mutex.h"

namespace resbm {
namespace {

TEST(SignalWatcher, CountsSignalsOnItsOwnThreadAndTheProcessLives) {
  Mutex mutex;
  CondVar changed;
  std::vector<int> counts;
  SignalWatcher watcher([&](int count) {
    MutexLock lock(mutex);
    counts.push_back(count);
    changed.NotifyAll();
  });
  for (int expected = 1; expected <= 3; ++expected) {
    kill(getpid(), expected == 2 ? SIGTERM : SIGINT);
    MutexLock lock(mutex);
    while (static_cast<int>(counts.size()) < expected) changed.Wait(mutex);
  }
  MutexLock lock(mutex);
  EXPECT_THAT(counts, ::testing::ElementsAre(1, 2, 3));
}

TEST(SignalWatcher, EndsWithoutASignal) {
  SignalWatcher watcher([](int) { FAIL() << "no signal was sent"; });
}

}  // namespace
}  // namespace resbm
