#include "coordinator/compare/gate.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/compare/example_runs.h"

namespace resbm::coordinator {
namespace {

using ::testing::HasSubstr;

Comparison TwoArms(ExampleRun worse) {
  worse.boundary = "ratio: 8";
  return Compare(GroupRuns({ExampleRecord({}), ExampleRecord(worse)}));
}

GateResult Check(const Comparison& comparison, const std::string& gate) {
  const auto parsed = ParseGate(gate);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const auto results = CheckGates(comparison, {*parsed});
  EXPECT_EQ(results.size(), 1u);
  return results[0];
}

TEST(Gate, SaysWhatFailedWithTheFigures) {
  ExampleRun worse;
  worse.top1 = 0.89;
  const GateResult result = Check(TwoArms(worse), "top1_drop=0.5");
  EXPECT_FALSE(result.passed);
  EXPECT_FALSE(result.enough_seeds);
  EXPECT_EQ(result.text, "ratio=8: top1_drop 1 points (90 -> 89), limit 0.5 points");
  EXPECT_TRUE(Check(TwoArms(worse), "top1_drop=1.01").passed);
}

TEST(Gate, EachNameHasItsUnitAndDirection) {
  ExampleRun worse;
  worse.validation_loss = 0.33;    // +0.03, +10 %
  worse.samples_per_second = 80;   // -20 %
  worse.peak_memory = 60'000'000;  // +20 %
  worse.payload_bytes = 1505;      // 2020 -> 3030: +50 %
  const Comparison comparison = TwoArms(worse);
  for (const auto& [pass, fail] : std::vector<std::pair<std::string, std::string>>{
           {"validation_loss_rise=0.031", "validation_loss_rise=0.029"},
           {"validation_loss_rise_percent=10.1", "validation_loss_rise_percent=9.9"},
           {"samples_per_second_drop=20.1", "samples_per_second_drop=19.9"},
           {"peak_memory_rise=20.1", "peak_memory_rise=19.9"},
           {"bytes_rise=50.1", "bytes_rise=49.9"},
           {"top1_drop=0", "top1_drop=-1"}}) {
    EXPECT_TRUE(Check(comparison, pass).passed) << pass;
    EXPECT_FALSE(Check(comparison, fail).passed) << fail;
  }
}

TEST(Gate, WhatWasNotMeasuredFails) {
  std::vector<RunRecord> runs = {ExampleRecord({}), ExampleRecord({"b", 1, "ratio: 8"})};
  runs[1].figures.erase("top1");
  const GateResult result = Check(Compare(GroupRuns(std::move(runs))), "top1_drop=0.5");
  EXPECT_FALSE(result.passed);
  EXPECT_THAT(result.text, HasSubstr("ratio=8 has no top1"));
}

// The mean of those that did not diverge says nothing.
TEST(Gate, ASeedWithoutTheFigureFails) {
  std::vector<RunRecord> runs = ExampleRecords({}, {0.9, 0.91, 0.92});
  ExampleRun other;
  other.path = "b";
  other.boundary = "ratio: 8";
  for (RunRecord& run : ExampleRecords(other, {0.9, 0.91, 0.92})) runs.push_back(run);
  EXPECT_TRUE(Check(Compare(GroupRuns(runs)), "top1_drop=0.5").passed);
  EXPECT_TRUE(Check(Compare(GroupRuns(runs)), "top1_drop=0.5").enough_seeds);
  runs.back().figures.erase("top1");
  const GateResult result = Check(Compare(GroupRuns(runs)), "top1_drop=0.5");
  EXPECT_FALSE(result.passed);
  EXPECT_FALSE(result.enough_seeds);
  EXPECT_EQ(result.text, "ratio=8: top1_drop cannot be checked: 1 of the 3 seeds of ratio=8 have no top1");
}

TEST(Gate, WithoutCutsBytesAreThoseOfThePlan) {
  std::vector<RunRecord> runs = {ExampleRecord({}), ExampleRecord({"b", 1, "ratio: 8"})};
  for (RunRecord& run : runs) run.figures.erase(kBytesPerStep);
  const GateResult result = Check(Compare(GroupRuns(std::move(runs))), "bytes_rise=-49");
  EXPECT_TRUE(result.passed) << result.text;
  EXPECT_THAT(result.text, HasSubstr("1568 -> 784"));
}

TEST(Gate, ABadOneListsThoseThatThereAre) {
  for (const char* text : {"top1=1", "", "=3"}) {
    EXPECT_THAT(ParseGate(text).status().message(), HasSubstr("there are top1_drop, validation_loss_rise"));
  }
  for (const char* text : {"top1_drop", "top1_drop=", "top1_drop=x", "top1_drop=nan"}) {
    EXPECT_THAT(ParseGate(text).status().message(), HasSubstr("expected a limit"));
  }
}

}  // namespace
}  // namespace resbm::coordinator
