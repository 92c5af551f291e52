// What Describe says of the job: for those who watch it.
#include <gtest/gtest.h>

#include "tests/stage_server/support/harness.h"

namespace resbm::stage_server::testing {
namespace {

v1::DescribeReply Describe(Harness& h) {
  v1::DescribeReply reply;
  h.machine().Describe(&reply);
  return reply;
}

TEST(Describe, AFreeStageHasNoPlaceAndNoProgress) {
  Harness h;
  const v1::DescribeReply reply = Describe(h);
  EXPECT_EQ(reply.state(), "EMPTY");
  EXPECT_EQ(reply.stages(), 0u);
  EXPECT_FALSE(reply.has_progress());
}

TEST(Describe, AStepInWorkSaysWhomItWaitsFor) {
  Harness h(/*stage=*/1, /*stages=*/3);
  h.Ready();
  EXPECT_EQ(Describe(h).state(), "READY");
  EXPECT_FALSE(Describe(h).has_progress());
  h.Begin(1, 100);
  h.clock().Advance(absl::Seconds(12));
  const v1::DescribeReply reply = Describe(h);
  EXPECT_EQ(reply.stage(), 1u);
  EXPECT_EQ(reply.stages(), 3u);
  EXPECT_EQ(reply.step(), 0u) << "the last that was committed";
  EXPECT_EQ(reply.progress().step(), 1u);
  EXPECT_EQ(reply.progress().waiting_for().direction(), v1::UP);
  EXPECT_EQ(reply.progress().waiting_for().micro_batch(), 0u);
  EXPECT_DOUBLE_EQ(reply.progress().waiting_for().seconds(), 12);
  h.Settle();
  EXPECT_EQ(Describe(h).state(), "COMPUTED");
  EXPECT_FALSE(Describe(h).has_progress());
}

}  // namespace
}  // namespace resbm::stage_server::testing
