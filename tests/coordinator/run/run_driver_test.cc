#include "coordinator/run/run_driver.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/run/fake_fleet.h"

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RunDriver, TakesEveryStepOnceAndEndsDone) {
  FakeFleet fleet(3);
  fleet.Start();
  fleet.Run();
  EXPECT_TRUE(fleet.driver->finished());
  EXPECT_TRUE(fleet.driver->result().ok()) << fleet.driver->result();
  ASSERT_EQ(fleet.steps.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(fleet.steps[i].step, i + 1);
    EXPECT_DOUBLE_EQ(fleet.steps[i].decision.loss, 2);
    EXPECT_DOUBLE_EQ(fleet.steps[i].learning_rate, 0.1 * (i + 1));
    EXPECT_EQ(fleet.steps[i].fence.epoch(), 4u);
  }
  EXPECT_EQ(fleet.Count(v1::ControlRequest::kCommit), 9);
  EXPECT_EQ(fleet.Count(v1::ControlRequest::kBegin), 3);  // the rest was aboard of Commit
  for (const auto& [stage, id] : fleet.state_id) EXPECT_EQ(id, fleet.driver->state_id()) << stage;
}

TEST(RunDriver, AsksForTheSpansOfTheFirstStepsOnly) {
  for (const std::int64_t trace_steps : {0, 2, -1}) {
    FakeFleet fleet(2);
    fleet.plan.trace_steps = trace_steps;
    fleet.Start();
    fleet.Run();
    std::vector<bool> traced;
    for (const auto& [stage, request] : fleet.requests) {
      if (stage != 1) continue;
      if (request.has_begin()) traced.push_back(request.begin().trace());
      if (request.has_commit() && request.commit().has_next()) traced.push_back(request.commit().next().trace());
    }
    EXPECT_EQ(traced, (std::vector<bool>{trace_steps != 0, trace_steps != 0, trace_steps < 0})) << trace_steps;
  }
}

TEST(RunDriver, FeedsAStepAheadAndNeverTwice) {
  FakeFleet fleet(2);
  fleet.Start();
  fleet.Run();
  EXPECT_THAT(fleet.calls, ElementsAre("open", "feed 1", "feed 2", "release 1", "feed 3", "release 2", "release 3"));
}

TEST(RunDriver, NothingIsFedAheadOfAnEvaluation) {
  FakeFleet fleet(2);
  fleet.plan.evaluation_micro_batches = {2, 2};
  fleet.plan.step_shape = [](std::int64_t step) { return FakeFleet::Shape((step - 1) / 2); };
  fleet.Start();
  fleet.Run();
  EXPECT_THAT(fleet.calls, ElementsAre("open", "feed 1", "feed 2", "release 1", "release 2", "feed evaluation",
                                       "release evaluation", "feed 3", "release 3", "feed evaluation",
                                       "release evaluation"));
  ASSERT_EQ(fleet.evaluations.size(), 2u);
  EXPECT_EQ(fleet.evaluations[0].after_step, 2);
  EXPECT_EQ(fleet.evaluations[1].after_step, 3);
  EXPECT_DOUBLE_EQ(fleet.evaluations[1].loss, 0.5);
  EXPECT_DOUBLE_EQ(fleet.evaluations[1].top1, 0.75);
}

TEST(RunDriver, ARunWithoutStepsEvaluatesOnce) {
  FakeFleet fleet(2);
  fleet.plan.total_steps = 0;
  fleet.plan.evaluation_micro_batches = {4};
  fleet.plan.restore.resize(2);
  fleet.Start();
  fleet.Run();
  EXPECT_TRUE(fleet.driver->finished());
  EXPECT_EQ(fleet.evaluations.size(), 1u);
  EXPECT_THAT(fleet.uploads, ElementsAre(0, 1));
  EXPECT_THAT(fleet.steps, IsEmpty());
}

TEST(RunDriver, AStepIsDividedByTheWeightOfItsDataAndStagesAreToldWhichSamplesTheyTake) {
  FakeFleet fleet(2);
  fleet.plan.step_shape = [](std::int64_t step) {
    StepShape shape;
    shape.micro_batches = {2, 1};
    shape.weight = 16;
    shape.sample_indices = {7, 8, 9 + static_cast<std::uint64_t>(step)};
    return shape;
  };
  fleet.Start();
  fleet.Run();
  ASSERT_TRUE(fleet.driver->result().ok()) << fleet.driver->result();
  EXPECT_DOUBLE_EQ(fleet.steps[0].decision.loss, 0.5);
  EXPECT_EQ(fleet.steps[0].decision.gradient_scale, 1.0f / 16);
  for (const auto& [stage, request] : fleet.requests) {
    if (!request.has_begin()) continue;
    const v1::Begin& begin = request.begin();
    EXPECT_EQ(begin.total_weight(), 16);
    ASSERT_EQ(begin.micro_batches_size(), 2);
    EXPECT_THAT(begin.micro_batches(0).sample_indices(), ElementsAre(7, 8));
    EXPECT_THAT(begin.micro_batches(1).sample_indices(), ElementsAre(10));
    // What is announced is a shape only.
    EXPECT_THAT(begin.prefetch(0).sample_indices(), IsEmpty());
  }
}

TEST(RunDriver, AStageThatCountsAnotherWeightEndsTheRun) {
  FakeFleet fleet(2);
  fleet.miscounted = true;
  fleet.Start();
  fleet.Run();
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("step 1: stage 1 counted 3 "));
  EXPECT_EQ(fleet.Count(v1::ControlRequest::kCommit), 0);
}

TEST(RunDriver, WhatIsWrongWithTheReadyStagesEndsTheRunBeforeItsFirstStep) {
  FakeFleet fleet(2);
  std::size_t asked = 0;
  fleet.plan.check_ready = [&](const std::vector<v1::Ready>& ready) {
    asked = ready.size();
    return absl::InvalidArgumentError("a tensor that is no parameter's");
  };
  fleet.Start();
  fleet.Run();
  EXPECT_EQ(asked, 2u);
  EXPECT_EQ(fleet.driver->result(), absl::InvalidArgumentError("a tensor that is no parameter's"));
  EXPECT_THAT(fleet.calls, IsEmpty());
  EXPECT_THAT(fleet.steps, IsEmpty());
}

TEST(RunDriver, ASkippedStepIsACommitToo) {
  FakeFleet fleet(2);
  fleet.poisoned = {{1, 2}};
  fleet.Start();
  fleet.Run();
  ASSERT_EQ(fleet.steps.size(), 3u);
  EXPECT_EQ(fleet.steps[0].decision.decision, v1::Commit::APPLY);
  EXPECT_EQ(fleet.steps[1].decision.decision, v1::Commit::SKIP);
  EXPECT_EQ(fleet.steps[2].decision.decision, v1::Commit::APPLY);
  int skips = 0;
  for (const auto& [stage, request] : fleet.requests) {
    if (request.has_commit() && request.commit().decision() == v1::Commit::SKIP) {
      ++skips;
      EXPECT_EQ(request.commit().attempt().step(), 2u);
    }
  }
  EXPECT_EQ(skips, 2);  // on all stages
}

TEST(RunDriver, NoCommitBeforeEveryStageHasComputed) {
  FakeFleet fleet(3);
  fleet.Start();
  fleet.RunUntilSent(v1::ControlRequest::kBegin);
  ASSERT_EQ(fleet.events.size(), 3u);
  fleet.driver->OnEvent(0, fleet.events[0].second);
  fleet.driver->OnEvent(0, fleet.events[0].second);  // said twice
  fleet.driver->OnEvent(2, fleet.events[2].second);
  EXPECT_EQ(fleet.Count(v1::ControlRequest::kCommit), 0);
  fleet.driver->OnEvent(1, fleet.events[1].second);
  EXPECT_EQ(fleet.Count(v1::ControlRequest::kCommit), 3);
}

TEST(RunDriver, AStageThatDoesNotAnswerIsNamedByTheDeadline) {
  FakeFleet fleet(3);
  fleet.plan.timeouts.attach = absl::Seconds(1);
  fleet.silent = {2};
  fleet.Start();
  fleet.Run();
  EXPECT_EQ(fleet.driver->NextDeadline(), absl::Seconds(1));
  fleet.clock.Advance(absl::Milliseconds(999));
  fleet.driver->OnTimer();
  EXPECT_FALSE(fleet.driver->finished());
  fleet.clock.Advance(absl::Milliseconds(1));
  fleet.driver->OnTimer();
  EXPECT_TRUE(fleet.driver->finished());
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("stage 2"));
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("attach_seconds"));
}

TEST(RunDriver, AStalledStepBlamesTheSilentStage) {
  FakeFleet fleet(2);
  fleet.plan.timeouts.stall = absl::Seconds(20);
  fleet.Start();
  fleet.RunUntilSent(v1::ControlRequest::kBegin);
  fleet.events.clear();
  fleet.clock.Advance(absl::Seconds(19));
  v1::Progress progress;
  progress.mutable_waiting_for()->set_direction(v1::DOWN);
  progress.mutable_waiting_for()->set_link_connected(true);
  fleet.Progress(0, progress);
  fleet.clock.Advance(absl::Seconds(1));
  fleet.driver->OnTimer();
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("step 1"));
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("stage 1 holds it up"));
}

TEST(RunDriver, AStalledStepDoesNotBlameTheStagesThatHaveComputed) {
  FakeFleet fleet(3);
  fleet.plan.timeouts.stall = absl::Seconds(30);
  fleet.Start();
  fleet.RunUntilSent(v1::ControlRequest::kBegin);
  ASSERT_EQ(fleet.events.size(), 3u);
  fleet.driver->OnEvent(1, fleet.events[1].second);
  fleet.driver->OnEvent(2, fleet.events[2].second);
  fleet.events.clear();
  // Stage 0 hangs in a computation, and says every second that it is there.
  for (int second = 1; second <= 30; ++second) {
    fleet.clock.Advance(absl::Seconds(1));
    fleet.Progress(0, v1::Progress());
    fleet.driver->OnTimer();
  }
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("stage 0 holds it up"));
}

TEST(RunDriver, ProgressOfAnyStagePutsTheStallOff) {
  FakeFleet fleet(1);
  fleet.plan.timeouts.stall = absl::Seconds(10);
  fleet.Start();
  fleet.RunUntilSent(v1::ControlRequest::kBegin);
  fleet.events.clear();
  for (int i = 1; i <= 5; ++i) {
    fleet.clock.Advance(absl::Seconds(9));
    v1::Progress progress;
    progress.set_forwards(i);
    fleet.Progress(0, progress);
    fleet.driver->OnTimer();
    EXPECT_FALSE(fleet.driver->finished());
  }
}

// Scenario 28: a tensor of 75 MB at 10 Mbit/s is on its way for a minute.
TEST(RunDriver, BytesThatMoveOnASlowLinkPutTheStallOff) {
  FakeFleet fleet(2);
  fleet.plan.timeouts.stall = absl::Seconds(60);
  fleet.Start();
  fleet.RunUntilSent(v1::ControlRequest::kBegin);
  fleet.events.clear();
  v1::Progress receiver;
  receiver.mutable_waiting_for()->set_direction(v1::UP);
  receiver.mutable_waiting_for()->set_link_connected(true);
  v1::Progress sender;
  sender.set_forwards(1);
  for (int second = 1; second <= 120; ++second) {
    fleet.clock.Advance(absl::Seconds(1));
    receiver.set_moved_bytes(second * 1250000);
    fleet.Progress(0, sender);
    fleet.Progress(1, receiver);
    fleet.driver->OnTimer();
    ASSERT_FALSE(fleet.driver->finished()) << second << " s: " << fleet.driver->result();
  }
  // Nothing moves any more: the same count again and again is no progress.
  for (int second = 1; second <= 60; ++second) {
    EXPECT_FALSE(fleet.driver->finished()) << second;
    fleet.clock.Advance(absl::Seconds(1));
    fleet.Progress(0, sender);
    fleet.Progress(1, receiver);
    fleet.driver->OnTimer();
  }
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(RunDriver, AStateOtherThanTheOneToldIsASplitAndEndsTheRun) {
  const std::function<void(v1::ControlEvent*)> lies[] = {
      [](v1::ControlEvent* e) { if (e->has_ready()) e->mutable_ready()->set_state_id(1); },
      [](v1::ControlEvent* e) { if (e->has_computed()) e->mutable_computed()->set_base_state_id(1); },
      [](v1::ControlEvent* e) { if (e->has_committed()) e->mutable_committed()->set_state_id(1); },
  };
  for (const auto& lie : lies) {
    FakeFleet fleet(2);
    fleet.Start();
    while (!fleet.events.empty()) {
      auto [stage, event] = std::move(fleet.events.front());
      fleet.events.pop_front();
      lie(&event);
      fleet.driver->OnEvent(stage, event);
    }
    EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("stage 0"));
    EXPECT_EQ(fleet.driver->committed_steps(), 0);
  }
}

TEST(RunDriver, AStepThatOutlastsItsOwnLimitEndsTheRun) {
  FakeFleet fleet(1);
  fleet.plan.timeouts.stall = absl::Seconds(100);
  fleet.plan.timeouts.step = absl::Seconds(5);
  fleet.Start();
  fleet.RunUntilSent(v1::ControlRequest::kBegin);
  fleet.events.clear();
  EXPECT_EQ(fleet.driver->NextDeadline(), absl::Seconds(5));
  fleet.clock.Advance(absl::Seconds(5));
  fleet.driver->OnTimer();
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("timeouts.step_seconds"));
}

TEST(RunDriver, AnEvaluationCanStallToo) {
  FakeFleet fleet(1);
  fleet.plan.timeouts.stall = absl::Seconds(30);
  fleet.plan.total_steps = 0;
  fleet.plan.evaluation_micro_batches = {4};
  fleet.Start();
  fleet.RunUntilSent(v1::ControlRequest::kEvaluate);
  fleet.events.clear();
  EXPECT_EQ(fleet.driver->NextDeadline(), absl::Seconds(30));
  fleet.clock.Advance(absl::Seconds(30));
  fleet.driver->OnTimer();
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("the evaluation after step 0"));
}

TEST(RunDriver, MessagesOfAnOlderFenceAreDropped) {
  FakeFleet fleet(1);
  fleet.Start();
  fleet.events.clear();
  v1::Fence old;
  old.set_epoch(3);
  old.set_generation(9);
  v1::ControlEvent failed;
  failed.mutable_failed()->set_code(13);
  fleet.Post(0, failed, old);
  fleet.Run();
  EXPECT_FALSE(fleet.driver->finished());
}

TEST(RunDriver, ARefusalSaysWhoHoldsTheStage) {
  FakeFleet fleet(1);
  fleet.Start();
  fleet.events.clear();
  v1::ControlEvent refused;
  refused.mutable_refused()->set_holder_job_id("other-job");
  refused.mutable_refused()->mutable_holder_fence()->set_epoch(7);
  refused.mutable_refused()->set_reason("the stage works for another job");
  fleet.Post(0, refused, {});
  fleet.Run();
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("other-job"));
}

TEST(RunDriver, AFailedStageStopsTheRunWithItsCodeAndWords) {
  FakeFleet fleet(2);
  fleet.Start();
  v1::ControlEvent failed;
  failed.mutable_failed()->set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
  failed.mutable_failed()->set_phase("RUNNING");
  failed.mutable_failed()->mutable_attempt()->set_step(5);
  failed.mutable_failed()->set_micro_batch(2);
  failed.mutable_failed()->set_blame(v1::UP);
  failed.mutable_failed()->set_text("out of memory");
  fleet.events.clear();
  fleet.Post(1, failed, fleet.driver->fence());
  fleet.Run();
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(fleet.driver->result().message(),
            "stage 1 failed (RUNNING, step 5, micro-batch 2) (over the link from stage 0): out of memory");
}

TEST(RunDriver, AnInterruptFinishesTheStepInWork) {
  FakeFleet fleet(2);
  fleet.plan.total_steps = 100;
  fleet.plan.evaluation_micro_batches = {4};
  fleet.Start();
  fleet.RunUntil([&] { return fleet.steps.size() == 5; });
  fleet.driver->Interrupt();
  fleet.Run();
  EXPECT_TRUE(fleet.driver->finished());
  EXPECT_TRUE(fleet.driver->result().ok());
  EXPECT_LE(fleet.steps.size(), 7u);
  EXPECT_EQ(fleet.driver->committed_steps(), static_cast<std::int64_t>(fleet.steps.size()));
  EXPECT_THAT(fleet.evaluations, IsEmpty());
}

TEST(RunDriver, AnInterruptFinishesTheEvaluationInWorkSoThatTheWeightsCanBeRead) {
  FakeFleet fleet(2);
  fleet.plan.evaluation_micro_batches = {4};
  fleet.plan.step_shape = [](std::int64_t step) { return FakeFleet::Shape(step - 1); };  // an epoch each
  fleet.Start();
  fleet.RunUntilSent(v1::ControlRequest::kEvaluate);
  fleet.driver->Interrupt();
  EXPECT_FALSE(fleet.driver->finished());  // its stages are not READY
  fleet.Run();
  EXPECT_TRUE(fleet.driver->finished());
  EXPECT_TRUE(fleet.driver->result().ok());
  EXPECT_EQ(fleet.evaluations.size(), 1u);
  EXPECT_EQ(fleet.driver->committed_steps(), 1);
}

TEST(RunDriver, AnInterruptOfAnEvaluationAloneStopsAtOnce) {
  FakeFleet fleet(2);
  fleet.plan.total_steps = 0;
  fleet.plan.evaluation_micro_batches = {4};
  fleet.Start();
  fleet.RunUntilSent(v1::ControlRequest::kEvaluate);
  fleet.driver->Interrupt();
  EXPECT_TRUE(fleet.driver->finished());
  EXPECT_THAT(fleet.evaluations, IsEmpty());
}

TEST(RunDriver, TheLossScaleTravelsInBeginAndHalvesAfterASkippedStep) {
  FakeFleet fleet(2);
  fleet.plan.scale_loss = true;
  fleet.poisoned = {{1, 2}};
  fleet.Start();
  fleet.Run();
  std::vector<double> scales;
  for (const auto& [stage, request] : fleet.requests) {
    if (stage != 0) continue;
    if (request.has_begin()) scales.push_back(request.begin().loss_scale());
    if (request.commit().has_next()) scales.push_back(request.commit().next().loss_scale());
  }
  EXPECT_THAT(scales, ::testing::ElementsAre(LossScaler::kStart, LossScaler::kStart, LossScaler::kStart / 2));
  EXPECT_EQ(fleet.steps[0].decision.gradient_scale * LossScaler::kStart, fleet.steps[2].decision.gradient_scale *
                                                                             (LossScaler::kStart / 2));
}

}  // namespace
}  // namespace resbm::coordinator
