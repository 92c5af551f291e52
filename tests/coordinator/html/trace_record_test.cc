#include "coordinator/html/trace_record.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/html/example_reports.h"

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

absl::StatusOr<TraceRecord> Parse(const std::string& text, std::size_t max_spans = 1000) {
  std::istringstream json(text);
  return ParseTrace(json, max_spans);
}

TEST(TraceRecord, HasWhatTheStagesDidAndTheStepsOfTheCoordinator) {
  const auto trace = Parse(ExampleTrace(2, 3));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->stages, 2);
  EXPECT_THAT(trace->steps,
              ElementsAre(TracedStep{1, 0, 300'000}, TracedStep{2, 300'000, 100'000}, TracedStep{3, 400'000, 90'000}));
  EXPECT_EQ(trace->spans.front(), (TraceSpan{0, TraceLane::kCompute, "F0", "forward", 1, 0, 0, 0, 4000}));
  EXPECT_THAT(trace->spans,
              ::testing::Contains(TraceSpan{1, TraceLane::kReceiveUp, "F2", "receive", 2, 2, 784, 313'000, 1000}));
  for (const TraceSpan& span : trace->spans) EXPECT_LT(span.stage, 2);  // none of the coordinator's
}

TEST(TraceRecord, WithoutTheCoordinatorAStepReachesAsFarAsItsStages) {
  const auto trace = Parse(
      R"({"traceEvents":[{"ph":"X","pid":0,"tid":0,"name":"F0","cat":"forward","ts":10,"dur":5,"args":{"step":4}},
          {"ph":"X","pid":1,"tid":0,"name":"F0","cat":"forward","ts":16,"dur":4,"args":{"step":4}}]})");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->steps, ElementsAre(TracedStep{4, 10, 10}));
  EXPECT_EQ(trace->spans[0].micro_batch, -1);
}

TEST(TraceRecord, PassesOverEventsThatNoTimelineHas) {
  const auto trace = Parse(
      R"({"displayTimeUnit":"ms","otherData":{"a":{"b":[1]}},"traceEvents":[3,null,[],{"ph":"X"},
          {"ph":"X","pid":-1,"tid":0,"ts":1,"dur":1,"args":{"step":1}},
          {"ph":"X","pid":0,"tid":9,"ts":1,"dur":1,"args":{"step":1}},
          {"ph":"X","pid":0,"tid":0,"ts":"1","dur":1,"args":{"step":1}},
          {"ph":"X","pid":0,"tid":0,"ts":1,"dur":-1,"args":{"step":1}},
          {"ph":"X","pid":0,"tid":0,"ts":1,"dur":1,"args":7},
          {"ph":"s","pid":0,"tid":0,"ts":1,"args":{"step":1}},
          {"ph":"X","pid":99999999999,"tid":0,"ts":1,"dur":1,"args":{"step":1}}]})");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_TRUE(trace->spans.empty());
  EXPECT_TRUE(trace->steps.empty());
  EXPECT_EQ(trace->stages, 0);
}

TEST(TraceRecord, OfTooManySpansTheFirstWholeStepsAreKept) {
  const auto trace = Parse(ExampleTrace(2, 50), 100);  // 35 spans a step
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->spans.size(), 70u);
  EXPECT_THAT(trace->steps, ElementsAre(Field(&TracedStep::step, 1), Field(&TracedStep::step, 2)));
  const auto one_step = Parse(ExampleTrace(2, 1), 20);
  ASSERT_TRUE(one_step.ok()) << one_step.status();
  EXPECT_EQ(one_step->spans.size(), 20u);
}

TEST(TraceRecord, DoesNotReadAllOfALongTrace) {
  std::istringstream json(ExampleTrace(2, 3000));
  const auto trace = ParseTrace(json, 100);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_LT(json.tellg(), 200'000);  // of 10 MB
}

TEST(TraceRecord, WhatIsNoTraceIsRefused) {
  for (const char* text : {"", "x", "[]", "{}", "{\"events\":[]}", "{\"traceEvents\":[{\"ph\":\"X\"}", "7"}) {
    EXPECT_EQ(Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  const auto empty = Parse(R"({"traceEvents":[]})");
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_TRUE(TypicalSteps(*empty, 3, 100).empty());
}

TEST(TypicalSteps, AreTheMedianOneAndItsNeighboursButNotTheWarmUp) {
  const auto trace = Parse(ExampleTrace(2, 5), 10'000);
  ASSERT_TRUE(trace.ok()) << trace.status();
  // Of steps 2 to 5 the 3rd is the shortest, the others are alike.
  const auto one = TypicalSteps(*trace, 1, 10'000);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_NE(one[0].step, 1);
  EXPECT_EQ(one[0].duration_us, 100'000);
  const auto three = TypicalSteps(*trace, 3, 10'000);
  ASSERT_EQ(three.size(), 3u);
  EXPECT_THAT(three, ::testing::Contains(one[0]));
  EXPECT_EQ(three[2].step, three[0].step + 2);
}

TEST(TypicalSteps, AreFewerWhereTheirSpansAreTooMany) {
  const auto trace = Parse(ExampleTrace(2, 5), 10'000);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(TypicalSteps(*trace, 3, 5).size(), 1u);
  EXPECT_EQ(TypicalSteps(*trace, 3, 80).size(), 2u);  // 35 spans each
  const auto first_only = Parse(ExampleTrace(2, 1));
  EXPECT_THAT(TypicalSteps(*first_only, 3, 1000), ElementsAre(Field(&TracedStep::step, 1)));
}

}  // namespace
}  // namespace resbm::coordinator
