#include "coordinator/run/run_loop.h"

#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "tests/coordinator/run/fake_fleet.h"

namespace resbm::coordinator {
namespace {

// A step has begun; what the stages say to it has not been heard yet.
class RunLoopTest : public ::testing::Test {
 protected:
  RunLoopTest() {
    fleet_.plan.timeouts.stall = absl::Seconds(60);
    fleet_.Start();
    fleet_.RunUntilSent(v1::ControlRequest::kBegin);
  }
  absl::Status Run() {
    RunUntilFinished(&events_, fleet_.clock, fleet_.driver.get());
    return fleet_.driver->result();
  }

  FakeFleet fleet_{2};
  EventQueue events_;
};

TEST_F(RunLoopTest, WhatHasComeInIsHeardBeforeTheTimeIsJudged) {
  // Stopped for longer than the stall limit while two messages wait.
  events_.Post([this] { fleet_.clock.Advance(absl::Seconds(70)); });
  events_.Post([this] { fleet_.Run(); });
  EXPECT_TRUE(Run().ok()) << fleet_.driver->result();
  EXPECT_EQ(fleet_.steps.size(), 3u);
}

TEST_F(RunLoopTest, WhatComesInSoonAfterAStandstillIsStillInTime) {
  events_.Post([this] {
    fleet_.clock.Advance(absl::Seconds(70));
    // The network's threads were stopped, too: what they read comes a little later.
    events_.Post([this] { fleet_.Run(); });
  });
  EXPECT_TRUE(Run().ok()) << fleet_.driver->result();
  EXPECT_EQ(fleet_.steps.size(), 3u);
}

TEST_F(RunLoopTest, AStallIsNoticedHoweverMuchComesIn) {
  fleet_.events.clear();
  const absl::Duration began = fleet_.clock.Now();
  std::function<void()> chatter = [&] {
    fleet_.clock.Advance(absl::Milliseconds(500));
    fleet_.Progress(0, v1::Progress());
    events_.Post(chatter);
  };
  events_.Post(chatter);
  EXPECT_EQ(Run().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(fleet_.clock.Now() - began, absl::Seconds(60));
}

TEST_F(RunLoopTest, WhatAnotherThreadPostsIsHeard) {
  std::thread other([this] {
    events_.Post([this] { fleet_.driver->OnError(absl::CancelledError("stopped by another thread")); });
  });
  EXPECT_EQ(Run(), absl::CancelledError("stopped by another thread"));
  other.join();
}

}  // namespace
}  // namespace resbm::coordinator
