#include "coordinator/status/status_text.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace resbm::coordinator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

StageStatus Stage(std::uint32_t stage, const std::string& job) {
  StageStatus status;
  status.address = "host-" + std::string(1, static_cast<char>('a' + stage)) + ":50051";
  v1::DescribeReply& reply = status.reply;
  reply.set_job_id(job);
  reply.set_stage(stage);
  reply.set_stages(2);
  reply.set_state("RUNNING");
  reply.set_step(40);
  reply.set_device("cpu");
  reply.mutable_fence()->set_epoch(1);
  reply.mutable_fence()->set_generation(2);
  reply.mutable_progress()->set_step(41);
  reply.mutable_progress()->mutable_waiting_for()->set_direction(stage == 0 ? v1::DOWN : v1::UP);
  reply.mutable_progress()->mutable_waiting_for()->set_seconds(12);
  reply.mutable_up()->set_connected(true);
  reply.mutable_up()->set_connections(3);
  reply.mutable_down()->set_retained_bytes(75264);
  reply.set_uptime_seconds(754);
  return status;
}

StageStatus Unreachable() {
  StageStatus status;
  status.address = "host-b:50051";
  status.error = absl::UnavailableError("failed to connect to all addresses; last error: UNKNOWN: ...");
  return status;
}

RunInfo ExampleRun() {
  RunInfo run;
  run.directory = "runs/a-1";
  run.stages = {"run-1", 100, {"host-a:50051", "host-b:50051"}};
  run.coordinator_pid = 4711;
  run.last.emplace();
  run.last->step = 40;
  run.last->epoch = 1;
  run.last->loss = 0.4312;
  run.last->step_seconds = 1.94;
  run.last->age_seconds = 3;
  return run;
}

TEST(StatusText, OneRowForEachStageAndTheRunAboveThem) {
  Status status;
  status.run = ExampleRun();
  status.stages = {Stage(0, "run-1"), Stage(1, "run-1")};
  EXPECT_EQ(FormatStatus(status, Terminal()),
            "runs/a-1: step 40 of 100, epoch 2, loss 0.4312, 1.94 s a step, 3 s ago; process 4711\n"
            "job run-1: holds 2 of 2 stage servers\n"
            "  stage  address       state    doing                                                               step  "
            "fence      links   kept  inbox  uptime  device\n"
            "  0/2    host-a:50051  RUNNING  step 41: waits 12 s for micro-batch 0 from stage 1: link 1 is down    40  "
            "  1.2  ok+2 DOWN  75264      0   12:34     cpu\n"
            "  1/2    host-b:50051  RUNNING  step 41: waits 12 s for micro-batch 0 from stage 0: link 1 is down    40  "
            "  1.2  ok+2 DOWN  75264      0   12:34     cpu\n");
  EXPECT_FALSE(status.incomplete());
}

TEST(StatusText, AStageThatDoesNotAnswerHasARowThatSaysSoAndTheOthersAreShown) {
  Status status;
  status.stages = {Stage(0, "run-1"), Unreachable()};
  const std::string text = FormatStatus(status, Terminal());
  EXPECT_THAT(text, HasSubstr("job run-1: holds 1 of 2 stage servers\n"));
  EXPECT_THAT(text, HasSubstr("waits 12 s"));
  EXPECT_THAT(text, HasSubstr("host-b:50051  -        cannot be reached"));
  EXPECT_TRUE(status.incomplete());
  const auto json = nlohmann::json::parse(StatusToJson(status));
  EXPECT_EQ(json["stages"][0]["reachable"], true);
  EXPECT_EQ(json["stages"][1]["reachable"], false);
  EXPECT_THAT(json["stages"][1]["error"].get<std::string>(), HasSubstr("UNAVAILABLE"));
  EXPECT_FALSE(json.contains("run"));
}

TEST(StatusText, AStageThatWorksForAnotherJobIsNotTheRuns) {
  Status status;
  status.run = ExampleRun();
  status.stages = {Stage(0, "run-1"), Stage(1, "run-2")};
  const std::string text = FormatStatus(status, Terminal());
  EXPECT_THAT(text, HasSubstr("works for another job, run-2"));
  EXPECT_THAT(text, HasSubstr("job run-2: holds 1 of 2 stage servers\n"));
}

TEST(StatusText, AFreeStageHasDashes) {
  Status status;
  status.stages.resize(1);
  status.stages[0].address = "host-a:50051";
  status.stages[0].reply.set_state("EMPTY");
  status.stages[0].reply.set_device("cuda:0");
  EXPECT_EQ(FormatStatus(status, Terminal()),
            "  stage  address       state  doing  step  fence  links  kept  inbox  uptime  device\n"
            "  -      host-a:50051  EMPTY  free      -      -    - -     -      -    0:00  cuda:0\n");
}

TEST(StatusText, JsonHasWhatTheTableHasAndMore) {
  Status status;
  status.run = ExampleRun();
  status.run->last->loss.reset();  // was not finite
  status.stages = {Stage(0, "run-1")};
  const std::string text = StatusToJson(status);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["run"]["step"], 40);
  EXPECT_EQ(json["run"]["total_steps"], 100);
  EXPECT_TRUE(json["run"]["loss"].is_null());
  EXPECT_EQ(json["run"]["coordinator_pid"], 4711);
  EXPECT_EQ(json["run"]["ended"], false);
  const auto& stage = json["stages"][0];
  EXPECT_EQ(stage["job"], "run-1");
  EXPECT_EQ(stage["fence"], "1.2");
  EXPECT_EQ(stage["waiting_for"]["neighbour"], "stage 1");
  EXPECT_EQ(stage["waiting_for"]["end"], "down");
  EXPECT_EQ(stage["waiting_for"]["seconds"], 12);
  EXPECT_EQ(stage["waiting_for"]["link_connected"], false);
  EXPECT_EQ(stage["up"]["connections"], 3);
  EXPECT_EQ(stage["down"]["retained_bytes"], 75264);
  EXPECT_EQ(stage["uptime_seconds"], 754);
}

TEST(StatusText, ARunThatHasEndedIsALine) {
  Status status;
  status.run = ExampleRun();
  status.run->coordinator_pid.reset();
  status.run->has_summary = true;
  EXPECT_TRUE(status.run->ended());
  ASSERT_LT(status.run->last->step, status.run->stages.total_steps);
  EXPECT_THAT(FormatStatus(status, Terminal()), HasSubstr("; the run ended before its last step\n"));
  status.run->last->step = status.run->stages.total_steps;
  const std::string text = FormatStatus(status, Terminal());
  EXPECT_THAT(text, HasSubstr("; the run has ended\n"));
  EXPECT_THAT(text, Not(HasSubstr("address")));
}

}  // namespace
}  // namespace resbm::coordinator
