#include "coordinator/sweep/advice.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/compare/example_runs.h"

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Top-1 of the seeds by arm; the first arm is uncompressed.
SweepOutcome Outcome(const std::vector<std::pair<std::string, std::vector<double>>>& top1) {
  std::vector<Arm> arms;
  for (const auto& [ratio, values] : top1) {
    ExampleRun run;
    run.boundary = ratio.empty() ? "kind: IDENTITY" : "ratio: " + ratio;
    arms.push_back({ratio.empty() ? "kind=IDENTITY" : "ratio=" + ratio, ExampleRecords(run, values)});
  }
  SweepOutcome outcome;
  outcome.field = "boundary.ratio";
  outcome.fraction = 0.1;
  outcome.comparison = Compare(arms);
  return outcome;
}

// r = 2 loses nothing, r = 4 0.3 points, r = 8 2 points.
SweepOutcome ThreeSeeds() {
  return Outcome({{"", {0.900, 0.910, 0.905}},
                  {"2", {0.901, 0.910, 0.904}},
                  {"4", {0.897, 0.907, 0.902}},
                  {"8", {0.880, 0.889, 0.886}}});
}

TEST(Sweep, TheTableIsAccuracyAgainstBytesWithItsNoise) {
  SweepOutcome outcome = ThreeSeeds();
  EXPECT_EQ("\n" + SweepTable(outcome, Terminal()), R"(
  arm            seeds  bytes/sample  vs fp16  top-1 %      min..max  lost  +- 95 %    budget
  kind=IDENTITY      3          6272     1.0x    90.50  90.00..91.00     -        -  baseline
  ratio=2            3          3136     2.0x    90.50  90.10..91.00  0.00     0.25    within
  ratio=4            3          1568     4.0x    90.20  89.70..90.70  0.30     0.00    within
  ratio=8            3           784     8.0x    88.50  88.00..88.90  2.00     0.25    beyond
)");
}

TEST(Sweep, TheFewestBytesWithinTheBudgetAreChosen) {
  const SweepOutcome outcome = ThreeSeeds();
  ASSERT_NE(Choose(outcome), nullptr);
  EXPECT_EQ(Choose(outcome)->name, "ratio=4");
  const std::string advice = absl::StrJoin(Advise(outcome), "\n");
  EXPECT_THAT(advice, HasSubstr("ratio=4: loses 0.30 +- 0.00 points of kind=IDENTITY, sends 4.0 times less than fp16"));
  EXPECT_THAT(advice, HasSubstr("to go beyond it"));
  EXPECT_THAT(advice, HasSubstr("this was 10 % of the training data"));
  EXPECT_THAT(advice, Not(HasSubstr("verdict")));
}

TEST(Sweep, ATighterBudgetChoosesMoreBytes) {
  SweepOutcome outcome = ThreeSeeds();
  outcome.budget = 0.2;
  EXPECT_EQ(Choose(outcome)->name, "ratio=2");
  outcome.budget = -1;
  EXPECT_EQ(Choose(outcome), nullptr);
  EXPECT_THAT(absl::StrJoin(Advise(outcome), "\n"), HasSubstr("lower the ratio below that of ratio=2"));
}

TEST(Sweep, TheLargestRatioOfTheSweepShouldBeRaised) {
  SweepOutcome outcome = ThreeSeeds();
  outcome.budget = 3;
  EXPECT_THAT(absl::StrJoin(Advise(outcome), "\n"), HasSubstr("raise it further"));
}

TEST(Sweep, BelowThreeSeedsThereIsAHintAndNoVerdict) {
  const SweepOutcome outcome = Outcome({{"", {0.9}}, {"4", {0.9}}});
  EXPECT_THAT(Advise(outcome)[0], HasSubstr("no verdict: 1 seed an arm, 3 are needed"));
  EXPECT_THAT(SweepTable(outcome, Terminal()), HasSubstr("no verdict"));
}

TEST(Sweep, NoiseThatReachesBeyondTheBudgetIsSaid) {
  const SweepOutcome worse = Outcome({{"", {0.90, 0.91, 0.92}}, {"4", {0.92, 0.89, 0.89}}});
  EXPECT_THAT(SweepTable(worse, Terminal()), HasSubstr("beyond?"));
  // 0.4 points lost, +- 0.25.
  const SweepOutcome near = Outcome({{"", {0.900, 0.910, 0.905}}, {"4", {0.897, 0.906, 0.900}}});
  EXPECT_THAT(SweepTable(near, Terminal()), HasSubstr("within?"));
  EXPECT_THAT(absl::StrJoin(Advise(near), "\n"), HasSubstr("its noise reaches beyond the budget"));
}

TEST(Sweep, NoiseLargerThanTheBudgetMeansThatNothingIsKnown) {
  const SweepOutcome outcome = Outcome({{"", {0.90, 0.91, 0.92}}, {"4", {0.93, 0.92, 0.91}}});
  const std::string advice = absl::StrJoin(Advise(outcome), "\n");
  EXPECT_THAT(advice, HasSubstr("ratio=4: gains 1.00 +- 4.97 points of kind=IDENTITY"));
  EXPECT_THAT(advice, HasSubstr("this sweep cannot tell the arms apart"));
}

TEST(Sweep, AnArmThatWasStoppedIsNoCandidate) {
  SweepOutcome outcome = ThreeSeeds();
  outcome.stopped = {{"ratio=4", 1}};
  EXPECT_EQ(Choose(outcome)->name, "ratio=2");
  EXPECT_THAT(SweepTable(outcome, Terminal()), HasSubstr("stopped"));
  EXPECT_THAT(absl::StrJoin(Advise(outcome), "\n"),
              HasSubstr("ratio=4 did not converge and was stopped: lower the ratio"));
}

// A depth, a learning rate: then the bytes do not decide.
TEST(Sweep, OfEqualBytesTheArmThatLosesLeastIsChosen) {
  SweepOutcome outcome = ThreeSeeds();
  for (ComparedArm& arm : outcome.comparison.arms) arm.figures[kPlannedBytes] = {3, 784, 0, 784, 784};
  outcome.field = "boundary.low_dim.depth";
  EXPECT_EQ(Choose(outcome)->name, "ratio=2");
  const std::string advice = absl::StrJoin(Advise(outcome), "\n");
  EXPECT_THAT(advice, HasSubstr("; the best of them"));
  EXPECT_THAT(advice, Not(HasSubstr("fewest bytes")));
}

TEST(Sweep, ThatHasNotTrainedEveryArmSaysSoAndDrawsNoConclusionFromTheLast) {
  SweepOutcome outcome = Outcome({{"", {0.9, 0.91, 0.905}}, {"4", {0.9, 0.91, 0.905}}});
  EXPECT_THAT(absl::StrJoin(Advise(outcome), "\n"), HasSubstr("raise it further"));
  outcome.untried = {"ratio=8", "ratio=16"};
  const std::string advice = absl::StrJoin(Advise(outcome), "\n");
  EXPECT_THAT(advice, HasSubstr("not trained: ratio=8, ratio=16; of those that were:"));
  EXPECT_THAT(advice, Not(HasSubstr("raise it further")));
  outcome.budget = -5;
  EXPECT_THAT(absl::StrJoin(Advise(outcome), "\n"), Not(HasSubstr("lower the ratio")));
}

// It has a training loss, which is another figure.
TEST(Sweep, AnArmThatWasStoppedBeforeItsFirstEvaluationHasNoLoss) {
  SweepOutcome outcome = ThreeSeeds();
  ComparedArm& arm = outcome.comparison.arms.back();
  for (const char* figure : {"top1", "validation_loss"}) {
    arm.figures.erase(figure);
    arm.differences.erase(figure);
  }
  outcome.stopped = {{arm.name, 1}};
  EXPECT_FALSE(LossOf(outcome.comparison, arm).has_value());
  EXPECT_THAT(SweepTable(outcome, Terminal()), HasSubstr("-             -     -        -   stopped"));
}

TEST(Sweep, WithoutTop1TheLossInPercentIsTheMeasure) {
  std::vector<Arm> arms;
  for (const auto& [ratio, loss] : std::vector<std::pair<std::string, double>>{{"2", 2.0}, {"4", 2.02}}) {
    ExampleRun run;
    run.boundary = "ratio: " + ratio;
    run.validation_loss = loss;
    arms.push_back({"ratio=" + ratio, {ExampleRecord(run)}});
    arms.back().runs[0].figures.erase("top1");
  }
  SweepOutcome outcome;
  outcome.field = "boundary.ratio";
  outcome.comparison = Compare(arms);
  const auto loss = LossOf(outcome.comparison, outcome.comparison.arms[1]);
  ASSERT_TRUE(loss.has_value());
  EXPECT_NEAR(loss->mean, 1, 1e-9);
  EXPECT_FALSE(loss->points);
  outcome.budget = 0.5;
  EXPECT_EQ(Choose(outcome), nullptr);
  outcome.budget = 1.5;
  EXPECT_EQ(Choose(outcome)->name, "ratio=4");
  EXPECT_THAT(SweepTable(outcome, Terminal()), HasSubstr("test loss"));
}

TEST(Sweep, OfLanguageModelsTheLossInPercentIsTheMeasureThoughTheyHaveTop1) {
  std::vector<Arm> arms;
  for (const auto& [ratio, loss] : std::vector<std::pair<std::string, double>>{{"2", 1.5}, {"4", 1.506}, {"8", 1.6}}) {
    ExampleRun run;
    run.boundary = "ratio: " + ratio;
    run.is_text = true;
    run.validation_loss = loss;
    run.top1 = 0.5;
    arms.push_back({"ratio=" + ratio, {ExampleRecord(run)}});
  }
  SweepOutcome outcome;
  outcome.field = "boundary.ratio";
  outcome.comparison = Compare(arms);
  const auto loss = LossOf(outcome.comparison, outcome.comparison.arms[1]);
  ASSERT_TRUE(loss.has_value());
  EXPECT_NEAR(loss->mean, 0.4, 1e-9);
  EXPECT_FALSE(loss->points);
  EXPECT_EQ(Choose(outcome)->name, "ratio=4");
  EXPECT_THAT(SweepTable(outcome, Terminal()), HasSubstr("test loss"));
  outcome.budget = 0.1;
  EXPECT_THAT(absl::StrJoin(Advise(outcome), "\n"), HasSubstr("boundary.kind (IN_BRANCH, ADAPTER)"));
}

TEST(Sweep, TheTableIsAtMost100ColumnsWide) {
  SweepOutcome outcome = ThreeSeeds();
  for (ComparedArm& arm : outcome.comparison.arms) {
    arm.name = std::string(100, 'n');
    arm.figures[kPlannedBytes] = {1, 999.9e12, 0, 0, 0};
    arm.figures["top1"] = {3, 1, 0, 1, 1};
  }
  for (absl::string_view line : absl::StrSplit(SweepTable(outcome, Terminal()), '\n'))
    EXPECT_LE(line.size(), 100u) << line;
}

}  // namespace
}  // namespace resbm::coordinator
