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

TEST(Standstill, TimeInWhichTheCoordinatorStoodStillCountsAgainstNobody) {
  FakeFleet fleet(2);
  fleet.plan.timeouts.attach = absl::Seconds(30);
  fleet.plan.timeouts.stall = absl::Seconds(60);
  fleet.silent = {0, 1};
  fleet.Start();
  fleet.clock.Advance(absl::Seconds(100));
  fleet.driver->OnStandstill(absl::Seconds(99));
  fleet.driver->OnTimer();
  EXPECT_FALSE(fleet.driver->finished());
  EXPECT_EQ(fleet.driver->NextDeadline(), absl::Seconds(129));

  FakeFleet stepping(2);
  stepping.plan.timeouts.stall = absl::Seconds(60);
  stepping.Start();
  stepping.RunUntilSent(v1::ControlRequest::kBegin);
  stepping.events.clear();
  stepping.clock.Advance(absl::Seconds(10));
  stepping.clock.Advance(absl::Seconds(70));
  stepping.driver->OnStandstill(absl::Seconds(70));
  stepping.driver->OnTimer();
  EXPECT_FALSE(stepping.driver->finished());
  stepping.clock.Advance(absl::Seconds(49));
  stepping.driver->OnTimer();
  EXPECT_FALSE(stepping.driver->finished());
  stepping.clock.Advance(absl::Seconds(1));
  stepping.driver->OnTimer();
  EXPECT_EQ(stepping.driver->result().code(), absl::StatusCode::kDeadlineExceeded) << "60 s awake without progress";
}

TEST(Standstill, ALossRightAfterALongStandstillSaysSo) {
  for (const bool suspended : {true, false}) {
    FakeFleet fleet(2);
    fleet.Start();
    fleet.RunUntilSent(v1::ControlRequest::kBegin);
    fleet.clock.Advance(absl::Seconds(72));
    if (suspended) fleet.driver->OnStandstill(absl::Seconds(71));
    fleet.driver->OnLost(1, absl::UnavailableError("keepalive"));
    EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(fleet.driver->result().message(),
              suspended ? "stage 1 was lost: keepalive; this coordinator stood still for 71 s just before (suspended?), "
                          "so its peers hung up"
                        : "stage 1 was lost: keepalive");
  }
}

}  // namespace
}  // namespace resbm::coordinator
