#include "coordinator/compare/comparison_text.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/coordinator/compare/example_runs.h"

namespace resbm::coordinator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Three seeds of an uncompressed arm, and of r = 4 that loses about half a point.
Comparison Example() {
  ExampleRun base = {"runs/id", 1, "kind: IDENTITY"};
  base.payload_bytes = 4000;
  ExampleRun small = {"runs/r4-", 1, "ratio: 4"};
  small.samples_per_second = 150;
  small.peak_memory = 45'000'000;
  small.validation_loss = 0.32;
  std::vector<RunRecord> runs = ExampleRecords(base, {0.900, 0.910, 0.905});
  for (RunRecord& run : ExampleRecords(small, {0.895, 0.904, 0.901})) runs.push_back(std::move(run));
  return Compare(GroupRuns(std::move(runs)));
}

std::size_t Widest(const std::string& text) {
  std::size_t widest = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) widest = std::max(widest, line.size());
  return widest;
}

TEST(ComparisonText, LooksLikeThis) {
  const Comparison comparison = Example();
  EXPECT_EQ("\n" + FormatComparison(comparison, CheckGates(comparison, {{"top1_drop", 0.4}}), false, Terminal()), R"(
Quality (points: top-1 less that of kind=IDENTITY, the baseline)
  arm            seeds        final loss   validation loss        top-1 %      min..max  points
  kind=IDENTITY      3  0.7500 +- 0.0000  0.3000 +- 0.0000  90.50 +- 0.50  90.00..91.00       -
  ratio=4            3  0.7500 +- 0.0000  0.3200 +- 0.0000  90.00 +- 0.46  89.50..90.40   -0.50

Speed (waiting for links, sending, bubble, computing: % of the stages' time)
  arm            stages     samples/s  vs base  step s  epoch s  wait  send  bubble  busy
  kind=IDENTITY       2  100.0 +- 0.0        -  0.4000      4.0  10.0     -    20.0  60.0
  ratio=4             2  150.0 +- 0.0  +50.0 %  0.2667      4.0  10.0     -    20.0  60.0

Bytes (a step: at the cuts, both directions, with metadata; a sample: at all cut points)
  arm            a step  vs base  vs fp16  a sample  vs base  vs fp16  parameters  vs base
  kind=IDENTITY    8020        -     1.0x      6272        -     1.0x        1200        -
  ratio=4          2020  -74.8 %     4.0x      1568  -75.0 %     4.0x        1200   +0.0 %

Stages (peak memory in MB of 10^6 bytes)
  arm            stage  peak MB  vs base  weights  optimizer  activations  buffers       busy %
  kind=IDENTITY      0     50.0        -     10.0        5.0         30.0      5.0  70.0 +- 0.0
  kind=IDENTITY      1     20.0        -     10.0        5.0          4.0      1.0  50.0 +- 0.0
  ratio=4            0     45.0  -10.0 %     10.0        5.0         25.0      5.0  70.0 +- 0.0
  ratio=4            1     20.0   +0.0 %     10.0        5.0          4.0      1.0  50.0 +- 0.0

Training loss (mean of the steps since the column before)
  to step             1       2       3       5       6       7       8      10
  kind=IDENTITY  2.0000  1.5000  1.2000  0.9500  0.8500  0.8000  0.7800  0.7550
  ratio=4        2.0000  1.5000  1.2000  0.9500  0.8500  0.8000  0.7800  0.7550

Signals (slope of the loss per 100 steps, second half; spikes a run)
  arm              slope  spikes  at steps
  kind=IDENTITY  -2.4000     0.0
  ratio=4        -2.4000     0.0

What differs in the jobs
  ratio=4: boundary.kind = RESBM (baseline: IDENTITY)
  ratio=4: boundary.ratio = 4 (baseline: 16)

Verdict
  ratio=4: top1 -0.50 points +- 0.25 (95 %, 3 seeds, paired): worse

Gates
  FAILED  ratio=4: top1_drop 0.5 points (90.5 -> 90), limit 0.4 points
)");
}

TEST(ComparisonText, OfLanguageModelsTheLossIsWhatCounts) {
  ExampleRun base = {"runs/id", 1, "kind: IDENTITY"};
  base.is_text = true;
  base.validation_loss = 1.5;
  ExampleRun small = {"runs/r4-", 1, "ratio: 4"};
  small.is_text = true;
  small.validation_loss = 1.515;
  std::vector<RunRecord> runs = ExampleRecords(base, {0.5, 0.5, 0.5});
  for (RunRecord& run : ExampleRecords(small, {0.6, 0.6, 0.6})) runs.push_back(std::move(run));
  const Comparison comparison = Compare(GroupRuns(std::move(runs)));
  const std::string text = FormatComparison(comparison, {}, false, Terminal());
  EXPECT_EQ("\n" + text.substr(0, text.find("\n\nBytes")), R"(
Quality (loss a byte; baseline: kind=IDENTITY)
  arm            seeds         test loss      min..max  vs base  bits/byte  perplexity  top-1 %
  kind=IDENTITY      3  1.5000 +- 0.0000  1.500..1.500        -     2.1640       4.482    50.00
  ratio=4            3  1.5150 +- 0.0000  1.515..1.515  +1.00 %     2.1857       4.549    60.00

Speed (waiting for links, sending, bubble, computing: % of the stages' time)
  arm            stages    tokens/s  vs base  step s  epoch s  wait  send  bubble  busy
  kind=IDENTITY       2  12800 +- 0        -  0.4000      4.0  10.0     -    20.0  60.0
  ratio=4             2  12800 +- 0   +0.0 %  0.4000      4.0  10.0     -    20.0  60.0)");
  // Better next-byte accuracy does not make up for it.
  EXPECT_THAT(text, HasSubstr("ratio=4: validation_loss +0.0150 +- 0.0000 (95 %, 3 seeds, paired): worse"));
}

TEST(ComparisonText, IsAtMost100ColumnsWide) {
  Comparison comparison = Example();
  for (ComparedArm& arm : comparison.arms) {
    arm.name = std::string(200, 'n');
    for (auto& [name, spread] : arm.figures) {
      if (name.find("loss") != std::string::npos) spread = {3, 9.87654, 9.87654, 9.87654, 9.87654};
    }
    for (CurvePoint& point : arm.course) point = {9'999'999, 12.3456};
    for (int s = 0; s < 500; ++s) arm.spikes.insert(1000 + s);
  }
  comparison.caveats = {std::string("word ") + std::string(60, 'x') + " " + std::string(60, 'y')};
  EXPECT_LE(Widest(FormatComparison(comparison, {}, true, Terminal())), 100u);
  for (ComparedArm& arm : comparison.arms) {
    arm.figures[kBitsPerByte] = {3, 99.8765, 0, 99.8765, 99.8765};
    arm.figures["perplexity"] = {3, 99999.876, 0, 99999.876, 99999.876};
    arm.figures["tokens_per_second"] = {3, 9999999.9, 9999.9, 9999999.9, 9999999.9};
  }
  EXPECT_LE(Widest(FormatComparison(comparison, {}, true, Terminal())), 100u);
}

TEST(ComparisonText, BelowThreeSeedsNoVerdictIsClaimed) {
  const Comparison comparison = Compare(GroupRuns({ExampleRecord({}), ExampleRecord({"b", 1, "ratio: 8"})}));
  const std::string text = FormatComparison(comparison, CheckGates(comparison, {{"top1_drop", 1}}), false, Terminal());
  EXPECT_THAT(text, HasSubstr("ratio=8: top1 +0.00 points; no verdict: 1 seed, 3 are needed"));
  EXPECT_THAT(text, HasSubstr("less than 3 seeds"));
  EXPECT_THAT(text, Not(HasSubstr("beyond the noise")));
}

TEST(ComparisonText, EveryFigureIsThereWhenAskedFor) {
  EXPECT_THAT(FormatComparison(Example(), {}, true, Terminal()), HasSubstr("stages.1.commit_seconds"));
  EXPECT_THAT(FormatComparison(Example(), {}, false, Terminal()), Not(HasSubstr("commit_seconds")));
}

TEST(ComparisonText, CsvHasARowAFigureAndArm) {
  Comparison comparison = Example();
  comparison.arms[1].name = "a \"quoted\", arm";
  const std::string csv = ComparisonCsv(comparison);
  EXPECT_THAT(csv, ::testing::StartsWith("arm,figure,runs,mean,deviation,min,max,difference,margin95\n"));
  EXPECT_THAT(csv, HasSubstr("\nkind=IDENTITY,top1,3,0.905,0.005,0.9,0.91,,\n"));
  EXPECT_THAT(csv, HasSubstr("\n\"a \"\"quoted\"\", arm\",top1,3,0.9,0.00458258,0.895,0.904,-0.005,0.00248434\n"));
}

TEST(ComparisonText, JsonHasFiguresCourseAndGates) {
  const Comparison comparison = Example();
  const auto json = nlohmann::json::parse(ComparisonJson(comparison, CheckGates(comparison, {{"top1_drop", 0.4}})));
  ASSERT_EQ(json["arms"].size(), 2u);
  const auto& arm = json["arms"][1];
  EXPECT_EQ(arm["name"], "ratio=4");
  EXPECT_EQ(arm["runs"], nlohmann::json({"runs/r4-1", "runs/r4-2", "runs/r4-3"}));
  EXPECT_EQ(arm["seeds"], nlohmann::json({1, 2, 3}));
  EXPECT_EQ(arm["figures"]["samples_per_second"]["mean"], 150);
  EXPECT_EQ(arm["figures"]["samples_per_second"]["difference"], 50);
  EXPECT_EQ(arm["figures"]["top1"]["paired"], true);
  EXPECT_FALSE(json["arms"][0]["figures"]["top1"].contains("difference"));
  EXPECT_EQ(arm["course"].size(), 8u);
  ASSERT_EQ(json["gates"].size(), 1u);
  EXPECT_EQ(json["gates"][0]["passed"], false);
  EXPECT_EQ(json["verdicts"].size(), 1u);
}

}  // namespace
}  // namespace resbm::coordinator
