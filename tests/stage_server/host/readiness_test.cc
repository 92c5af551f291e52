#include "stage_server/host/readiness.h"

#include <gtest/gtest.h>

namespace resbm::stage_server::testing {
namespace {

v1::DescribeReply Held(const std::string& state) {
  v1::DescribeReply now;
  now.set_job_id("run-1");
  now.set_state(state);
  now.set_stage(1);
  now.set_stages(3);
  return now;
}

v1::DescribeReply Waiting(double seconds, bool connected) {
  v1::DescribeReply now = Held("RUNNING");
  v1::WaitingFor* waiting = now.mutable_progress()->mutable_waiting_for();
  waiting->set_direction(v1::DOWN);
  waiting->set_micro_batch(3);
  waiting->set_seconds(seconds);
  waiting->set_link_connected(connected);
  return now;
}

TEST(Readiness, AFreeStageIsReadyAndSoIsOneThatWorks) {
  v1::DescribeReply free;
  free.set_state("EMPTY");
  EXPECT_TRUE(Readiness(free, /*attached=*/false).ok());
  for (const char* state : {"FENCED", "LOADING", "READY", "RUNNING", "COMPUTED", "APPLYING", "EVALUATING", "EMPTY"}) {
    EXPECT_TRUE(Readiness(Held(state), /*attached=*/true).ok()) << state;
  }
}

TEST(Readiness, AFailedStageAndOneWhoseCoordinatorIsGoneAreNot) {
  EXPECT_EQ(Readiness(Held("FAILED"), true).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Readiness(Held("COMPUTED"), false).code(), absl::StatusCode::kUnavailable);
}

// However long it takes: a neighbour may compute, or the link be slow.
TEST(Readiness, WaitingIsNoFaultUnlessTheLinkIsDownForLong) {
  EXPECT_TRUE(Readiness(Waiting(3600, /*connected=*/true), true).ok());
  EXPECT_TRUE(Readiness(Waiting(9, /*connected=*/false), true).ok());
  const absl::Status stuck = Readiness(Waiting(10, /*connected=*/false), true);
  EXPECT_EQ(stuck.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(stuck.message(), "it waits for micro-batch 3 and link 2 is down");
}

}  // namespace
}  // namespace resbm::stage_server::testing
