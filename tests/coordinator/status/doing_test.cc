#include "coordinator/status/doing.h"

#include <gtest/gtest.h>

namespace resbm::coordinator {
namespace {

v1::DescribeReply Stage(std::uint32_t stage, const std::string& state) {
  v1::DescribeReply reply;
  reply.set_job_id("run-1");
  reply.set_stage(stage);
  reply.set_stages(3);
  reply.set_state(state);
  reply.set_step(40);
  return reply;
}

v1::DescribeReply Waiting(std::uint32_t stage, v1::Direction direction, bool connected) {
  v1::DescribeReply reply = Stage(stage, "RUNNING");
  reply.mutable_progress()->set_step(41);
  v1::WaitingFor* waiting = reply.mutable_progress()->mutable_waiting_for();
  waiting->set_direction(direction);
  waiting->set_micro_batch(3);
  waiting->set_seconds(12.3);
  waiting->set_link_connected(connected);
  return reply;
}

TEST(Doing, NamesWhomAStageWaitsForAndWhetherTheLinkIsDown) {
  EXPECT_EQ(Doing(Waiting(1, v1::UP, true)), "step 41: waits 12 s for micro-batch 3 from stage 0");
  EXPECT_EQ(Doing(Waiting(1, v1::DOWN, false)), "step 41: waits 12 s for micro-batch 3 from stage 2: link 2 is down");
}

TEST(Doing, TheEndStagesWaitForTheCoordinator) {
  EXPECT_EQ(Doing(Waiting(0, v1::UP, true)), "step 41: waits 12 s for micro-batch 3 from the coordinator");
  EXPECT_EQ(Doing(Waiting(2, v1::DOWN, false)),
            "step 41: waits 12 s for micro-batch 3 from the coordinator: link 3 is down");
}

TEST(Doing, AnEvaluationWaitsForWhatItSends) {
  v1::DescribeReply reply = Waiting(1, v1::DOWN, true);
  reply.set_state("EVALUATING");
  reply.mutable_progress()->clear_step();
  EXPECT_EQ(Doing(reply), "evaluation: waits 12 s for micro-batch 3 to leave for stage 2");
}

TEST(Doing, SaysHowFarAStepIsThatComputes) {
  v1::DescribeReply reply = Stage(0, "RUNNING");
  reply.mutable_progress()->set_step(41);
  reply.mutable_progress()->set_forwards(3);
  reply.mutable_progress()->set_backwards(2);
  EXPECT_EQ(Doing(reply), "step 41: computes, 3 forward and 2 backward are done");
  reply.set_state("EVALUATING");
  EXPECT_EQ(Doing(reply), "evaluation: computes, 3 forward are done");
}

TEST(Doing, HasWordsForEveryState) {
  EXPECT_EQ(Doing(Stage(0, "FENCED")), "waits for the coordinator");
  EXPECT_EQ(Doing(Stage(0, "READY")), "waits for the coordinator");
  EXPECT_EQ(Doing(Stage(0, "LOADING")), "loads its weights");
  EXPECT_EQ(Doing(Stage(0, "COMPUTED")), "step 41: computed, waits for the coordinator");
  EXPECT_EQ(Doing(Stage(0, "APPLYING")), "step 41: applies it");
  EXPECT_EQ(Doing(Stage(0, "FAILED")), "has failed, waits for the coordinator");
  v1::DescribeReply free;
  free.set_state("EMPTY");
  EXPECT_EQ(Doing(free), "free");
}

}  // namespace
}  // namespace resbm::coordinator
