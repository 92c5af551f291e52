// Spans: what a stage says it did, and when, where Begin asks for it.
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "stage_server/core/span_log.h"
#include "tests/stage_server/support/harness.h"

namespace resbm::stage_server::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::Begin Traced(v1::Begin begin) {
  begin.set_trace(true);
  return begin;
}

// "FORWARD LOCAL mb 0, 250 +250": when it began and how long it took, in ms.
std::string Text(const v1::Span& span) {
  return absl::StrCat(v1::Span::Kind_Name(span.kind()), " ", v1::Direction_Name(span.direction()), " mb ",
                      span.micro_batch(), ", ", span.start_nanos() / 1000000, " +", span.duration_nanos() / 1000000,
                      span.bytes() > 0 ? absl::StrCat(", ", span.bytes(), " bytes") : "",
                      span.tensor_index() > 0 ? absl::StrCat(", tensor ", span.tensor_index()) : "");
}
std::vector<std::string> Texts(const v1::Computed& computed) {
  std::vector<std::string> texts;
  for (const v1::Span& span : computed.spans()) texts.push_back(Text(span));
  return texts;
}

class Trace : public ::testing::Test {
 protected:
  // The load took 250 ms.
  Trace() { h_.Ready(); }

  void Begin(std::uint64_t step, std::uint64_t base, bool trace) {
    v1::Begin begin = MakeBegin(h_.fence(), step, base, 1, {2, 2});
    begin.set_trace(trace);
    h_.Begin(begin);
  }
  // Tensors of one end come after `ms`.
  void DeliverAfter(int ms, End end) {
    h_.clock().Advance(absl::Milliseconds(ms));
    ASSERT_TRUE(h_.Deliver(end));
  }
  const v1::Computed& computed() { return h_.last_event().computed(); }

  Harness h_;
};

TEST_F(Trace, WithoutBeingAskedAStageRecordsNothing) {
  Begin(1, 100, /*trace=*/false);
  EXPECT_FALSE(h_.links().up().recording);
  EXPECT_FALSE(h_.links().down().recording);
  h_.Settle();
  EXPECT_EQ(h_.state(), State::kComputed);
  EXPECT_THAT(computed().spans(), IsEmpty());
}

TEST_F(Trace, SpansAreTheStepInTheOrderInWhichItWasDone) {
  Begin(1, 100, /*trace=*/true);
  EXPECT_TRUE(h_.links().up().recording);
  EXPECT_TRUE(h_.links().down().recording);
  DeliverAfter(10, End::kUp);
  DeliverAfter(0, End::kUp);
  h_.FinishAllWork();  // both forwards
  DeliverAfter(40, End::kDown);
  h_.FinishAllWork();
  DeliverAfter(70, End::kDown);
  h_.FinishAllWork();
  ASSERT_EQ(h_.state(), State::kComputed);
  EXPECT_THAT(Texts(computed()),
              ElementsAre("WAIT UP mb 0, 250 +10", "FORWARD LOCAL mb 0, 260 +250", "FORWARD LOCAL mb 1, 510 +250",
                          "WAIT DOWN mb 0, 760 +40", "BACKWARD LOCAL mb 0, 800 +250", "WAIT DOWN mb 1, 1050 +70",
                          "BACKWARD LOCAL mb 1, 1120 +250", "FINISH LOCAL mb 0, 1370 +250"));
  EXPECT_EQ(computed().times().waiting_down_seconds(), 0.11);
}

TEST_F(Trace, WhatCrossedInTheStepComesWithItAndWhatCameEarlyForTheNextDoesNot) {
  Begin(1, 100, /*trace=*/true);
  h_.links().up().transfers = {
      {false, 1, 0, 0, 48, absl::Milliseconds(250), absl::Milliseconds(255)},
      {true, 1, 0, 1, 24, absl::Milliseconds(900), absl::Milliseconds(960)},
      {false, 2, 0, 0, 48, absl::Milliseconds(970), absl::Milliseconds(980)},
  };
  h_.links().down().transfers = {{true, 1, 1, 0, 32, absl::Milliseconds(300), absl::Milliseconds(310)}};
  h_.Settle();
  std::vector<std::string> texts = Texts(computed());
  ASSERT_GT(texts.size(), 3u);
  EXPECT_THAT(std::vector<std::string>(texts.end() - 3, texts.end()),
              ElementsAre("RECEIVE UP mb 0, 250 +5, 48 bytes", "SEND UP mb 0, 900 +60, 24 bytes, tensor 1",
                          "SEND DOWN mb 1, 300 +10, 32 bytes"));
  EXPECT_EQ(h_.links().up().transfers.size(), 1u);
}

TEST_F(Trace, TheCommitComesWithTheStepAfterIt) {
  Begin(1, 100, /*trace=*/true);
  h_.Settle();
  v1::Commit commit = MakeCommit(h_.fence(), 1, 100, 101);
  *commit.mutable_next() = Traced(MakeBegin(h_.fence(), 2, 101, 1, {2, 2}));
  const auto began = absl::ToInt64Milliseconds(h_.clock().Now());
  h_.Commit(commit);
  h_.Settle();
  ASSERT_EQ(computed().attempt().step(), 2u);
  EXPECT_EQ(Texts(computed()).back(), absl::StrCat("COMMIT LOCAL mb 0, ", began, " +250"));
}

TEST_F(Trace, TracingEndsWithTheFirstBeginThatDoesNotAskForIt) {
  Begin(1, 100, /*trace=*/true);
  h_.Settle();
  v1::Commit commit = MakeCommit(h_.fence(), 1, 100, 101);
  *commit.mutable_next() = MakeBegin(h_.fence(), 2, 101, 1, {2, 2});
  h_.Commit(commit);
  h_.Settle();
  ASSERT_EQ(computed().attempt().step(), 2u);
  EXPECT_THAT(computed().spans(), IsEmpty());
  EXPECT_FALSE(h_.links().up().recording);
  EXPECT_FALSE(h_.links().down().recording);
}

TEST_F(Trace, AnEvaluationIsNotRecorded) {
  Begin(1, 100, /*trace=*/true);
  h_.Settle();
  h_.Commit(MakeCommit(h_.fence(), 1, 100, 101));
  h_.Settle();
  h_.Evaluate(MakeEvaluate(1, 2, {2, 2}));
  EXPECT_FALSE(h_.links().up().recording);
  h_.Settle();
  EXPECT_TRUE(h_.last_event().has_evaluated());
}

TEST_F(Trace, AnAttemptThatFailedLeavesNoSpans) {
  Begin(1, 100, /*trace=*/true);
  h_.Deliver(End::kUp);
  h_.FinishAllWork();  // one forward
  h_.machine().OnLinkError(h_.fence(), End::kUp, absl::DataLossError("no"));
  h_.FinishAllWork();
  ASSERT_EQ(h_.state(), State::kFailed);
  h_.Attach(1, 2);
  h_.Keep(100, 0);
  h_.FinishAllWork();
  h_.Define(MakeProgram(1, "F0 F1 B0 B1", 2));
  Begin(1, 100, /*trace=*/true);
  const auto began = absl::ToInt64Milliseconds(h_.clock().Now());
  h_.DeliverAll();
  h_.FinishAllWork();
  ASSERT_EQ(h_.state(), State::kComputed);
  EXPECT_THAT(Texts(computed()), ElementsAre(absl::StrCat("WAIT UP mb 0, ", began, " +0"),
                                             absl::StrCat("FORWARD LOCAL mb 0, ", began, " +250"),
                                             absl::StrCat("FORWARD LOCAL mb 1, ", began + 250, " +250"),
                                             absl::StrCat("BACKWARD LOCAL mb 0, ", began + 500, " +250"),
                                             absl::StrCat("BACKWARD LOCAL mb 1, ", began + 750, " +250"),
                                             absl::StrCat("FINISH LOCAL mb 0, ", began + 1000, " +250")));
}

TEST(SpanLog, ComputedStaysBelowWhatGrpcTakes) {
  SpanLog log;
  const wire::Transfer transfer = {true, 1, 4095, 7, std::uint64_t{1} << 30, absl::Hours(10000), absl::Hours(10001)};
  log.AddTransfers(End::kDown, std::vector<wire::Transfer>(3 * SpanLog::kMost, transfer));
  log.AddWork(v1::Span::COMMIT, 0, absl::Hours(1), 1);
  log.AddWait(End::kUp, 1, absl::Hours(1), absl::Hours(2));
  ASSERT_EQ(log.spans().size(), SpanLog::kMost);
  v1::Computed computed;
  computed.mutable_spans()->Assign(log.spans().begin(), log.spans().end());
  EXPECT_LT(computed.ByteSizeLong(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace resbm::stage_server::testing
