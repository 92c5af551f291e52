// Who holds a stage, and what survives a change of hands.
#include <gtest/gtest.h>

#include "tests/stage_server/support/harness.h"

namespace resbm::stage_server::testing {
namespace {

TEST(Fences, ComparesTheEpochFirstAndThenTheGeneration) {
  Harness h;
  h.Attach(2, 5);
  EXPECT_EQ(h.TakeEvents(), "attached");
  h.Attach(1, 9);
  EXPECT_EQ(h.TakeEvents(), "refused");
  h.Attach(2, 5);
  EXPECT_EQ(h.TakeEvents(), "refused");
  h.Attach(2, 6);
  EXPECT_EQ(h.TakeEvents(), "attached");
  h.Attach(3, 1);
  EXPECT_EQ(h.TakeEvents(), "attached");
  EXPECT_EQ(h.machine().counters().refused_attaches, 2u);
}

TEST(Fences, ARefusalNamesTheHolderAndCarriesTheRefusedFence) {
  Harness h;
  h.Attach(3, 2, 1);
  h.Attach(3, 1, 2);
  const v1::ControlEvent& event = h.last_event();
  ASSERT_TRUE(event.has_refused());
  EXPECT_EQ(event.fence().generation(), 1u);
  EXPECT_EQ(event.refused().holder_job_id(), "job-a");
  EXPECT_EQ(event.refused().holder_fence().epoch(), 3u);
  EXPECT_EQ(event.refused().holder_fence().generation(), 2u);
  EXPECT_NE(event.refused().reason().find("3.1 is not newer than 3.2"), std::string::npos) << event.refused().reason();
}

TEST(Fences, AnotherJobIsRefusedUntilReleaseAndMayThenStartAtALowFence) {
  Harness h;
  h.Attach(7, 1, 1);
  v1::ControlRequest other;
  *other.mutable_fence() = MakeFence(1, 1);
  *other.mutable_attach() = MakeAttach(0, 1);
  other.mutable_attach()->set_job_id("job-b");
  h.machine().OnRequest(2, other);
  ASSERT_EQ(h.events(2).size(), 1u);
  EXPECT_EQ(h.events(2)[0].refused().holder_job_id(), "job-a");
  h.Release();
  h.machine().OnRequest(2, other);
  h.FinishAllWork();
  ASSERT_EQ(h.events(2).size(), 2u);
  EXPECT_TRUE(h.events(2)[1].has_attached());
}

TEST(Fences, NeverFallForAJobWithinALifeNotEvenAfterRelease) {
  Harness h;
  h.Attach(7, 1);
  h.Release();
  h.FinishAllWork();
  h.Attach(6, 1, 2);
  EXPECT_EQ(h.TakeEvents(), "refused");
  h.Attach(7, 1, 2);
  EXPECT_EQ(h.TakeEvents(), "refused");
  h.Attach(8, 1, 2);
  EXPECT_EQ(h.TakeEvents(), "attached");
}

TEST(Fences, VersionsThatDoNotMeetAreRefusedWithBoth) {
  Harness h;
  v1::ControlRequest request;
  *request.mutable_fence() = MakeFence(1, 1);
  *request.mutable_attach() = MakeAttach(1, 3);
  request.mutable_attach()->set_min_protocol_version(wire::kProtocolVersion + 1);
  request.mutable_attach()->set_max_protocol_version(wire::kProtocolVersion + 2);
  h.machine().OnRequest(1, request);
  ASSERT_EQ(h.events(1).size(), 1u);
  const v1::Refused& refused = h.events(1)[0].refused();
  EXPECT_EQ(refused.min_protocol_version(), wire::kProtocolVersion);
  EXPECT_EQ(refused.max_protocol_version(), wire::kProtocolVersion);
  EXPECT_NE(refused.reason().find("version 1, the coordinator 2 to 3"), std::string::npos) << refused.reason();
  // It holds nothing.
  EXPECT_TRUE(h.machine().tenancy().free());
  request.mutable_attach()->set_min_protocol_version(1);
  h.machine().OnRequest(1, request);
  EXPECT_TRUE(h.events(1)[1].has_attached());
  EXPECT_EQ(h.events(1)[1].attached().protocol_version(), wire::kProtocolVersion);
}

TEST(Fences, AnAttachWithoutJobOrLeaseEndsTheStream) {
  for (const char* broken : {"job", "lease", "stage"}) {
    Harness h;
    v1::ControlRequest request;
    *request.mutable_fence() = MakeFence(1, 1);
    *request.mutable_attach() = MakeAttach(1, 3);
    if (broken == std::string("job")) request.mutable_attach()->clear_job_id();
    if (broken == std::string("lease")) request.mutable_attach()->set_lease_seconds(-1);
    if (broken == std::string("stage")) request.mutable_attach()->set_stage(3);
    h.machine().OnRequest(1, request);
    ASSERT_EQ(h.ended().count(1), 1u) << broken;
    EXPECT_EQ(h.ended().at(1).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(h.machine().tenancy().free());
  }
}

TEST(Fences, ANewerAttachEndsTheOlderStream) {
  Harness h;
  h.Attach(1, 1, 1);
  h.Attach(2, 1, 2);
  ASSERT_EQ(h.ended().count(1), 1u);
  EXPECT_EQ(h.ended().at(1).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(h.ended().count(2), 0u);
}

TEST(Fences, MessagesOfAnOldFenceOrAnotherStreamAreDroppedAndCounted) {
  Harness h;
  h.Ready();
  h.TakeEvents();
  v1::ControlRequest begin = h.Request();
  *begin.mutable_begin() = MakeBegin(h.fence(), 1, 100, 1, {2, 2});
  v1::ControlRequest old = begin;
  *old.mutable_fence() = MakeFence(1, 0);
  h.machine().OnRequest(1, old);
  h.machine().OnRequest(2, begin);  // right fence, wrong stream
  v1::ControlRequest newer = begin;
  *newer.mutable_fence() = MakeFence(1, 2);  // nobody attached with it
  h.machine().OnRequest(1, newer);
  EXPECT_EQ(h.state(), State::kReady);
  EXPECT_EQ(h.TakeEvents(), "");
  EXPECT_EQ(h.machine().counters().stale_messages, 3u);
}

TEST(Fences, TheAnswerToAttachWaitsUntilTheComputeCallIsOver) {
  Harness h;
  h.Running();
  h.Deliver(End::kUp);
  ASSERT_TRUE(h.busy());  // Forward 0
  h.TakeEvents();
  h.TakeWorks();
  h.Attach(1, 2);
  EXPECT_EQ(h.state(), State::kFenced);
  EXPECT_FALSE(h.links().open());
  EXPECT_EQ(h.TakeEvents(), "");
  h.FinishWork();  // the forward
  EXPECT_EQ(h.TakeEvents(), "");
  h.FinishWork();  // the drop
  EXPECT_EQ(h.TakeWorks(), "Drop");
  EXPECT_EQ(h.TakeEvents(), "attached");
  EXPECT_EQ(h.computer().live_graphs(), 0u);
  EXPECT_EQ(h.machine().state_id(), 100u);
}

TEST(Fences, NothingButReleaseIsUnderstoodBeforeTheAnswerToAttach) {
  Harness h;
  h.Running();
  h.Deliver(End::kUp);
  h.Attach(1, 2);
  h.TakeEvents();
  h.Init();
  EXPECT_EQ(h.TakeEvents(), "failed");
  h.Release();
  h.FinishAllWork();
  EXPECT_EQ(h.state(), State::kEmpty);
  EXPECT_EQ(h.computer().weights(), std::nullopt);
}

TEST(Fences, UnfinishedWorkIsDroppedAndTheWeightsStay) {
  Harness h;
  h.Running();
  h.Deliver(End::kUp);
  h.FinishAllWork();
  const auto weights = h.computer().weights();
  h.TakeEvents();
  h.Attach(1, 2);
  h.FinishAllWork();
  const v1::Attached& attached = h.last_event().attached();
  EXPECT_EQ(attached.state_id(), 100u);
  EXPECT_EQ(attached.step(), 0u);
  EXPECT_EQ(attached.incarnation(), 4711u);
  EXPECT_FALSE(attached.has_computed());
  EXPECT_EQ(h.computer().weights(), weights);
  EXPECT_EQ(h.machine().counters().dropped_steps, 1u);
}

TEST(Fences, WhatCameAtAnOldFenceAndWasNotUsedIsNotUsedAtTheNew) {
  Harness h(2, 3);
  h.Running();
  h.Deliver(End::kUp);  // the last stage waits for the target, too
  h.Attach(1, 2);
  h.FinishAllWork();
  h.Keep(100, 0);
  h.FinishAllWork();
  h.Define(MakeProgram(1, "F0 F1 B0 B1", 2));
  h.TakeWorks();
  h.Begin(1, 100);
  h.Deliver(End::kDown);
  EXPECT_EQ(h.TakeWorks(), "");
  h.Deliver(End::kUp);
  EXPECT_EQ(h.TakeWorks(), "Forward 0");
}

TEST(Fences, WhatWasAnnouncedAtAnOldFenceIsExpectedAgainAtTheNew) {
  Harness h(0, 3);
  h.Ready();
  v1::Begin begin = MakeBegin(h.fence(), 1, 100, 1, {2, 2});
  for (int i = 0; i < 2; ++i) begin.add_prefetch()->set_samples(2);
  h.Begin(begin);
  h.Settle();
  h.Commit(MakeCommit(h.fence(), 1, 100, 101));
  h.FinishAllWork();
  h.Attach(1, 2);
  h.Keep(101, 1);
  h.FinishAllWork();
  h.Define(MakeProgram(1, "F0 F1 B0 B1", 2));
  h.Begin(2, 101);
  h.Settle();
  EXPECT_EQ(h.state(), State::kComputed);
}

TEST(Fences, AComputedStepIsKeptAndReportedEvenThroughTwoAttaches) {
  Harness h;
  h.Computed();
  const std::uint64_t gradients = h.computer().gradients();
  for (std::uint64_t generation : {2, 3}) {
    h.Attach(1, generation);
    h.FinishAllWork();
    const v1::Attached& attached = h.last_event().attached();
    ASSERT_TRUE(attached.has_computed());
    EXPECT_EQ(attached.computed().step(), 1u);
    EXPECT_EQ(attached.computed().fence().generation(), 1u);
    EXPECT_EQ(attached.state_id(), 100u);
  }
  EXPECT_EQ(h.computer().gradients(), gradients);
}

TEST(Fences, ApplyingFinishesBeforeANewerAttachIsAnswered) {
  Harness h;
  h.Reach(State::kApplying);
  h.TakeEvents();
  h.TakeWorks();
  h.Attach(2, 1, 2);
  EXPECT_EQ(h.state(), State::kApplying);
  EXPECT_TRUE(h.events(2).empty());
  h.FinishAllWork();
  EXPECT_EQ(h.TakeWorks(), "");  // what was begun ends; nothing is applied again
  EXPECT_EQ(h.state(), State::kFenced);
  ASSERT_EQ(h.TakeEvents(), "attached");
  EXPECT_TRUE(h.events(1).empty());
  EXPECT_EQ(h.machine().state_id(), 101u);
  EXPECT_EQ(h.machine().step(), 1u);
}

TEST(Fences, TheLastCommitIsReportedSoThatAPeerCanBeGivenIt) {
  Harness h;
  h.Computed();
  v1::Commit commit = MakeCommit(h.fence(), 1, 100, 101);
  *commit.mutable_next() = MakeBegin(h.fence(), 2, 101, 1, {2, 2});
  h.Commit(commit);
  h.FinishAllWork();
  h.Attach(1, 2);
  h.FinishAllWork();
  const v1::Attached& attached = h.last_event().attached();
  EXPECT_EQ(attached.state_id(), 101u);
  EXPECT_EQ(attached.step(), 1u);
  ASSERT_TRUE(attached.has_last_commit());
  EXPECT_EQ(attached.last_commit().new_state_id(), 101u);
  EXPECT_FLOAT_EQ(attached.last_commit().gradient_scale(), 0.5f);
  EXPECT_FALSE(attached.last_commit().has_next());
}

TEST(Fences, ANextBeginAboardIsDroppedWhenAnAttachComesWhileApplying) {
  Harness h;
  h.Computed();
  v1::Commit commit = MakeCommit(h.fence(), 1, 100, 101);
  *commit.mutable_next() = MakeBegin(h.fence(), 2, 101, 1, {2, 2});
  h.Commit(commit);
  h.Attach(1, 2);
  h.FinishAllWork();
  EXPECT_EQ(h.state(), State::kFenced);
  EXPECT_EQ(h.machine().state_id(), 101u);
}

TEST(Fences, ALoadThatANewerAttachStopsLeavesNoState) {
  Harness h;
  h.Reach(State::kLoading);
  h.TakeEvents();
  h.Attach(1, 2);
  h.FinishAllWork();
  EXPECT_EQ(h.last_event().attached().state_id(), 0u);
  EXPECT_EQ(h.computer().weights(), std::nullopt);
  h.Init(300);
  h.FinishAllWork();
  EXPECT_EQ(h.last_event().ready().state_id(), 300u);
}

TEST(Fences, AnOrphanGoesOnToComputedAndHoldsItUntilItsLeaseEnds) {
  Harness h;
  h.Running();
  h.machine().OnSessionClosed(1);
  h.Settle();
  EXPECT_EQ(h.state(), State::kComputed);
  h.clock().Advance(absl::Seconds(50));
  h.machine().OnTick();
  EXPECT_EQ(h.state(), State::kComputed);
  // The next coordinator of the run finds it.
  h.Attach(2, 1, 2);
  EXPECT_TRUE(h.last_event().attached().has_computed());
  h.machine().OnSessionClosed(2);
  h.clock().Advance(absl::Seconds(61));
  h.machine().OnTick();
  h.FinishAllWork();
  EXPECT_EQ(h.state(), State::kEmpty);
  EXPECT_TRUE(h.machine().tenancy().free());
  EXPECT_EQ(h.computer().weights(), std::nullopt);
}

TEST(Fences, AnAttachedStageKeepsItsJobHoweverLongAStepTakes) {
  Harness h;
  h.Running();
  h.clock().Advance(absl::Hours(5));
  h.machine().OnTick();
  EXPECT_EQ(h.state(), State::kRunning);
}

TEST(Fences, RenewChangesHowLongAnOrphanHolds) {
  Harness h;
  h.Ready();
  v1::ControlRequest renew = h.Request();
  renew.mutable_renew()->set_lease_seconds(500);
  h.Send(renew);
  h.machine().OnSessionClosed(1);
  h.clock().Advance(absl::Seconds(499));
  h.machine().OnTick();
  EXPECT_EQ(h.state(), State::kReady);
  h.clock().Advance(absl::Seconds(2));
  h.machine().OnTick();
  EXPECT_EQ(h.state(), State::kEmpty);
}

TEST(Fences, AnotherJobMayComeAsSoonAsTheLeaseIsOverWithoutWaitingForATick) {
  Harness h;
  h.Ready();
  h.machine().OnSessionClosed(1);
  h.clock().Advance(absl::Seconds(61));
  v1::ControlRequest other;
  *other.mutable_fence() = MakeFence(1, 1);
  *other.mutable_attach() = MakeAttach(0, 1);
  other.mutable_attach()->set_job_id("job-b");
  h.machine().OnRequest(2, other);
  h.FinishAllWork();
  ASSERT_EQ(h.events(2).size(), 1u);
  EXPECT_TRUE(h.events(2)[0].has_attached());
  EXPECT_EQ(h.events(2)[0].attached().state_id(), 0u);
}

}  // namespace
}  // namespace resbm::stage_server::testing
