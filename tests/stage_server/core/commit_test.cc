// Commits: once, of the step that was computed, and with the next step aboard.
#include <gtest/gtest.h>

#include "tests/stage_server/support/harness.h"

namespace resbm::stage_server::testing {
namespace {

TEST(Commit, AppliesOnceAndNamesTheNewState) {
  Harness h;
  h.Computed();
  const auto before = h.computer().weights();
  h.TakeWorks();
  h.Commit(MakeCommit(h.fence(), 1, 100, 101));
  h.FinishAllWork();
  EXPECT_EQ(h.TakeWorks(), "Apply");
  EXPECT_EQ(h.last_event().committed().step(), 1u);
  EXPECT_EQ(h.last_event().committed().state_id(), 101u);
  EXPECT_NE(h.computer().weights(), before);
  EXPECT_EQ(h.links().up().released_steps, std::vector<std::uint64_t>{1});
  EXPECT_EQ(h.links().down().released_steps, std::vector<std::uint64_t>{1});
}

TEST(Commit, OfAnOldStepIsAnsweredAgainAndNotAppliedAgain) {
  Harness h;
  h.Computed();
  const v1::Commit commit = MakeCommit(h.fence(), 1, 100, 101);
  h.Commit(commit);
  h.FinishAllWork();
  const auto weights = h.computer().weights();
  h.TakeWorks();
  h.TakeEvents();
  h.Commit(commit);
  EXPECT_EQ(h.last_event().committed().step(), 1u);
  EXPECT_EQ(h.last_event().committed().state_id(), 101u);
  // Also while the next step runs.
  h.Begin(2, 101);
  h.Commit(commit);
  EXPECT_EQ(h.state(), State::kRunning);
  EXPECT_EQ(h.TakeEvents(), "committed committed");
  EXPECT_EQ(h.TakeWorks(), "");
  EXPECT_EQ(h.computer().weights(), weights);
}

TEST(Commit, OfTheSameStepToAnotherStateIsASplitAndRefused) {
  Harness h;
  h.Computed();
  h.Commit(MakeCommit(h.fence(), 1, 100, 101));
  h.FinishAllWork();
  h.Commit(MakeCommit(h.fence(), 1, 100, 102));
  EXPECT_EQ(Code(h.last_failure()), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(h.machine().state_id(), 101u);
}

TEST(Commit, SkipLeavesTheWeightsAndAdvancesStepAndState) {
  Harness h;
  h.Computed();
  const auto weights = h.computer().weights();
  h.TakeWorks();
  h.Commit(MakeCommit(h.fence(), 1, 100, 101, v1::Commit::SKIP));
  h.FinishAllWork();
  EXPECT_EQ(h.TakeWorks(), "Drop");
  EXPECT_EQ(h.computer().weights(), weights);
  EXPECT_EQ(h.computer().gradients(), 0u);
  EXPECT_EQ(h.machine().state_id(), 101u);
  EXPECT_EQ(h.machine().step(), 1u);
  EXPECT_EQ(h.machine().counters().skipped_steps, 1u);
  h.Begin(2, 101);
  EXPECT_EQ(h.state(), State::kRunning);
}

TEST(Commit, GoesOnWithTheNextBeginAboard) {
  Harness h;
  h.Computed();
  h.TakeEvents();
  v1::Commit commit = MakeCommit(h.fence(), 1, 100, 101);
  *commit.mutable_next() = MakeBegin(h.fence(), 2, 101, 1, {2, 2});
  h.Commit(commit);
  h.FinishAllWork();
  EXPECT_EQ(h.TakeEvents(), "committed");
  EXPECT_EQ(h.state(), State::kRunning);
  h.Settle();
  EXPECT_EQ(h.last_event().computed().attempt().step(), 2u);
  EXPECT_EQ(h.last_event().computed().base_state_id(), 101u);
}

TEST(Commit, ANextBeginOnAnotherStateIsCommittedAndThenFails) {
  Harness h;
  h.Computed();
  h.TakeEvents();
  v1::Commit commit = MakeCommit(h.fence(), 1, 100, 101);
  *commit.mutable_next() = MakeBegin(h.fence(), 2, 100, 1, {2, 2});
  h.Commit(commit);
  h.FinishAllWork();
  EXPECT_EQ(h.TakeEvents(), "committed failed");
  EXPECT_EQ(h.state(), State::kReady);
  EXPECT_EQ(h.machine().state_id(), 101u);
}

TEST(Commit, AnErrorWhileApplyingDropsTheStateForNobodyHasHalfAStep) {
  Harness h;
  h.Computed();
  h.computer().FailNext("Apply", absl::InternalError("LibTorch threw"));
  h.Commit(MakeCommit(h.fence(), 1, 100, 101));
  h.FinishAllWork();
  EXPECT_EQ(h.state(), State::kEmpty);
  EXPECT_EQ(h.machine().state_id(), 0u);
  EXPECT_EQ(h.last_failure().phase(), "APPLYING");
  EXPECT_EQ(h.last_failure().attempt().step(), 1u);
  EXPECT_FALSE(h.links().open());
  EXPECT_EQ(h.computer().weights(), std::nullopt);
  h.Attach(1, 2);
  EXPECT_EQ(h.last_event().attached().state_id(), 0u);
  EXPECT_FALSE(h.last_event().attached().has_computed());
}

TEST(Commit, AnErrorWhileApplyingBehindANewerAttachIsReportedAsNoState) {
  Harness h;
  h.Computed();
  h.computer().FailNext("Apply", absl::InternalError("LibTorch threw"));
  h.Commit(MakeCommit(h.fence(), 1, 100, 101));
  h.Attach(1, 2);
  h.TakeEvents();
  h.FinishAllWork();
  EXPECT_EQ(h.state(), State::kFenced);
  ASSERT_TRUE(h.last_event().has_attached());
  EXPECT_EQ(h.last_event().attached().state_id(), 0u);
}

TEST(Commit, WhatCannotBeUnderstoodIsRefusedAndThePromiseHolds) {
  const struct {
    const char* what;
    void (*spoil)(v1::Commit*);
    absl::StatusCode code;
  } cases[] = {
      {"another step", [](v1::Commit* c) { c->mutable_attempt()->set_step(2); }, absl::StatusCode::kFailedPrecondition},
      {"another fence", [](v1::Commit* c) { c->mutable_attempt()->mutable_fence()->set_epoch(9); },
       absl::StatusCode::kFailedPrecondition},
      {"another base", [](v1::Commit* c) { c->set_base_state_id(99); }, absl::StatusCode::kFailedPrecondition},
      {"no new state", [](v1::Commit* c) { c->set_new_state_id(0); }, absl::StatusCode::kInvalidArgument},
      {"no decision", [](v1::Commit* c) { c->clear_decision(); }, absl::StatusCode::kInvalidArgument},
      {"a NaN scale", [](v1::Commit* c) { c->set_gradient_scale(std::nanf("")); }, absl::StatusCode::kInvalidArgument},
      {"an infinite rate", [](v1::Commit* c) { c->set_learning_rate(HUGE_VAL); }, absl::StatusCode::kInvalidArgument},
      {"a snapshot", [](v1::Commit* c) { c->set_snapshot(true); }, absl::StatusCode::kUnimplemented},
  };
  for (const auto& c : cases) {
    Harness h;
    h.Computed();
    v1::Commit commit = MakeCommit(h.fence(), 1, 100, 101);
    c.spoil(&commit);
    h.Commit(commit);
    EXPECT_EQ(h.state(), State::kComputed) << c.what;
    EXPECT_EQ(Code(h.last_failure()), c.code) << c.what << ": " << h.last_failure().text();
    h.Commit(MakeCommit(h.fence(), 1, 100, 101));
    h.FinishAllWork();
    EXPECT_EQ(h.machine().state_id(), 101u) << c.what;
  }
}

TEST(Commit, ALinkThatBrokeAfterTheStepWasComputedFailsTheStageOnlyAfterTheCommit) {
  Harness h;
  h.Computed();
  h.machine().OnLinkError(h.fence(), End::kUp, absl::DataLossError("thrice"));
  EXPECT_EQ(h.state(), State::kComputed);
  h.TakeEvents();
  v1::Commit commit = MakeCommit(h.fence(), 1, 100, 101);
  *commit.mutable_next() = MakeBegin(h.fence(), 2, 101, 1, {2, 2});
  h.Commit(commit);
  h.FinishAllWork();
  EXPECT_EQ(h.TakeEvents(), "committed failed");
  EXPECT_EQ(h.state(), State::kFailed);
  EXPECT_EQ(h.machine().state_id(), 101u);
}

}  // namespace
}  // namespace resbm::stage_server::testing
