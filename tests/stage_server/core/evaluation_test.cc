#include <gtest/gtest.h>

#include "tests/stage_server/support/harness.h"

namespace resbm::stage_server::testing {
namespace {

TEST(Evaluation, ComputesForwardsOnlyReportsSumsAndLeavesTheWeights) {
  Harness h(1, 2);
  h.Ready();
  const auto weights = h.computer().weights();
  h.TakeWorks();
  h.Evaluate(MakeEvaluate(8, 2, {3, 2}));
  ASSERT_EQ(h.links().up().expected.size(), 2u);
  EXPECT_EQ(h.links().up().expected[0].evaluation(), 8u);
  EXPECT_EQ(h.links().up().expected[0].kind(), v1::ACTIVATION);
  EXPECT_EQ(h.links().down().expected[1].kind(), v1::TARGET);
  h.Settle();
  EXPECT_EQ(h.TakeWorks(), "Evaluate 0, Evaluate 1");
  EXPECT_EQ(h.state(), State::kReady);
  const v1::Evaluated& evaluated = h.last_event().evaluated();
  EXPECT_EQ(evaluated.evaluation(), 8u);
  EXPECT_EQ(evaluated.weight(), 5);
  EXPECT_EQ(h.computer().weights(), weights);
  EXPECT_TRUE(h.links().up().sent.empty());
  // Training goes on, then evaluation again.
  h.Begin(1, 100);
  h.Settle();
  EXPECT_EQ(h.state(), State::kComputed);
  h.Commit(MakeCommit(h.fence(), 1, 100, 101));
  h.FinishAllWork();
  h.Evaluate(MakeEvaluate(9, 2, {1, 1}));
  h.Settle();
  EXPECT_EQ(h.last_event().evaluated().evaluation(), 9u);
}

TEST(Evaluation, AMiddleStageExpectsNothingFromDownAndLimitsItsInboxSoftly) {
  Harness h;
  h.Ready();
  h.Evaluate(MakeEvaluate(1, 2, {2, 2}));
  EXPECT_TRUE(h.links().down().expected.empty());
  EXPECT_EQ(h.links().up().limit, 2u);
  EXPECT_FALSE(h.links().up().hard);
}

TEST(Evaluation, ComputeWaitsForSends) {
  Harness h;
  h.Ready();
  h.TakeWorks();
  h.Evaluate(MakeEvaluate(1, 2, {2, 2}));
  h.DeliverAll();
  h.links().down().all_sent = false;
  h.FinishAllWork();
  EXPECT_EQ(h.TakeWorks(), "Evaluate 0");
  h.machine().OnLinkChanged();
  EXPECT_FALSE(h.busy());
  h.clock().Advance(absl::Seconds(1));
  h.machine().OnTick();
  EXPECT_EQ(h.last_event().progress().waiting_for().direction(), v1::DOWN);
  h.links().down().all_sent = true;
  h.machine().OnLinkChanged();
  h.FinishAllWork();
  EXPECT_EQ(h.TakeWorks(), "Evaluate 1");
  EXPECT_EQ(h.last_event().evaluated().times().waiting_down_seconds(), 1);
}

TEST(Evaluation, RetainsSentTensorsUpToABudgetOnly) {
  StageMachineOptions options;
  options.max_evaluation_retained_bytes = 100;
  Harness h(1, 3, options);
  h.Ready();
  h.Evaluate(MakeEvaluate(1, 2, {2, 2}));
  const int released = h.links().down().released_all;
  h.links().down().retained_bytes = 100;
  h.Deliver(End::kUp);
  h.FinishAllWork();
  EXPECT_EQ(h.links().down().released_all, released);
  h.links().down().retained_bytes = 101;
  h.Deliver(End::kUp);
  h.FinishAllWork();
  EXPECT_EQ(h.links().down().released_all, released + 1);
}

TEST(Evaluation, WhatItSentIsForgottenWhenTheNextWorkBegins) {
  Harness h;
  h.Ready();
  h.Evaluate(MakeEvaluate(1, 2, {2, 2}));
  h.Settle();
  ASSERT_EQ(h.state(), State::kReady);
  const int released = h.links().down().released_all;
  h.Begin(1, 100);
  EXPECT_EQ(h.links().down().released_all, released + 1);
}

TEST(Evaluation, LeavesRoomForWhatWasPrefetchedForTheNextStep) {
  Harness h(0, 2);
  h.Ready();
  h.Begin(MakeBegin(h.fence(), 1, 100, 1, {2, 2}, {2, 2}));
  h.DeliverAll();
  h.Settle();
  h.Commit(MakeCommit(h.fence(), 1, 100, 101));
  h.FinishAllWork();
  h.Evaluate(MakeEvaluate(1, 2, {2, 2}));
  EXPECT_EQ(h.links().up().limit, 4u);
  h.Settle();
  EXPECT_EQ(h.last_event().evaluated().evaluation(), 1u);
  h.Begin(MakeBegin(h.fence(), 2, 101, 1, {2, 2}));
  EXPECT_TRUE(h.links().up().expected.empty()) << "they came before the evaluation";
  h.Settle();
  EXPECT_EQ(h.state(), State::kComputed);
}

TEST(Evaluation, AnErrorFailsTheStageWithItsWeightsIntact) {
  Harness h;
  h.Ready();
  h.computer().FailNext("Evaluate 1", absl::ResourceExhaustedError("no memory"));
  h.Evaluate(MakeEvaluate(1, 2, {2, 2}));
  h.Settle();
  EXPECT_EQ(h.state(), State::kFailed);
  EXPECT_EQ(h.last_failure().phase(), "EVALUATING");
  EXPECT_EQ(h.last_failure().micro_batch(), 1u);
  EXPECT_EQ(h.machine().state_id(), 100u);
}

TEST(Evaluation, AProgramForTrainingOrOfAnotherLengthIsRefused) {
  Harness h;
  h.Ready();
  h.Evaluate(MakeEvaluate(1, 1, {2, 2}));
  EXPECT_EQ(h.last_failure().code(), static_cast<std::uint32_t>(absl::StatusCode::kInvalidArgument));
  h.Evaluate(MakeEvaluate(1, 2, {2}));
  EXPECT_EQ(h.last_failure().code(), static_cast<std::uint32_t>(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(h.state(), State::kReady);
}

}  // namespace
}  // namespace resbm::stage_server::testing
