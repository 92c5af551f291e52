#include "coordinator/compare/arms.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/compare/example_runs.h"

namespace resbm::coordinator {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<RunRecord> Records(const std::vector<ExampleRun>& examples) {
  std::vector<RunRecord> runs;
  for (const ExampleRun& example : examples) runs.push_back(ExampleRecord(example));
  return runs;
}

TEST(Arms, JobsThatDifferInTheSeedOnlyAreOneArmNamedByWhatDiffers) {
  const auto arms = GroupRuns(
      Records({{"a", 1, "ratio: 4"}, {"b", 1, "ratio: 8"}, {"c", 2, "ratio: 4"}, {"d", 1, "kind: IDENTITY"}}));
  ASSERT_EQ(arms.size(), 3u);
  EXPECT_EQ(arms[0].name, "ratio=4");
  EXPECT_THAT(arms[0].seeds(), ElementsAre(1, 2));
  EXPECT_EQ(arms[1].name, "ratio=8");
  EXPECT_EQ(arms[2].name, "kind=IDENTITY");
  EXPECT_THAT(DescribeDifferences(arms), ElementsAre("ratio=8: boundary.ratio = 8 (baseline: 4)",
                                                     "kind=IDENTITY: boundary.kind = IDENTITY (baseline: RESBM)",
                                                     "kind=IDENTITY: boundary.ratio = 16 (baseline: 4)"));
  EXPECT_THAT(Caveats(arms), Contains(HasSubstr("seeds 1, not 1, 2 as for ratio=4")));
}

TEST(Arms, AreNamedByTheFewestFieldsThoseOfTheBoundaryFirst) {
  std::vector<RunRecord> runs = Records({{"a", 1, "ratio: 4", "batch { samples: 32 }"},
                                         {"b", 1, "ratio: 8", "batch { samples: 16 }"},
                                         {"c", 1, "kind: IDENTITY", "batch { samples: 32 }"}});
  runs[1].job.mutable_data()->set_limit_train(100);
  const auto arms = GroupRuns(std::move(runs));
  ASSERT_EQ(arms.size(), 3u);
  EXPECT_EQ(arms[0].name, "ratio=4");
  EXPECT_EQ(arms[1].name, "ratio=8");
  EXPECT_EQ(arms[2].name, "kind=IDENTITY");
  // The rest is not lost.
  EXPECT_THAT(DescribeDifferences(arms), Contains("ratio=8: batch.samples = 16 (baseline: 32)"));
}

TEST(Arms, WhatDoesNotTellApartAloneIsNamedTogether) {
  const auto arms = GroupRuns(Records({{"a", 1, "ratio: 4", "batch { samples: 32 }"},
                                       {"b", 1, "ratio: 8", "batch { samples: 32 }"},
                                       {"c", 1, "ratio: 8", "batch { samples: 16 }"}}));
  ASSERT_EQ(arms.size(), 3u);
  EXPECT_EQ(arms[0].name, "ratio=4 samples=32");
  EXPECT_EQ(arms[1].name, "ratio=8 samples=32");
  EXPECT_EQ(arms[2].name, "ratio=8 samples=16");
}

TEST(Arms, ABoundaryThatStandsByDefaultIsNamedToo) {
  const auto arms = GroupRuns(Records({{"a", 1, "kind: IDENTITY"}, {"b", 1, ""}}));
  ASSERT_EQ(arms.size(), 2u);
  EXPECT_EQ(arms[0].name, "kind=IDENTITY");
  EXPECT_EQ(arms[1].name, "kind=RESBM");
}

TEST(Arms, TheNumberOfStagesIsNamedWhereItAloneDiffers) {
  std::vector<RunRecord> runs = Records({{"a", 1, "ratio: 4"}, {"b", 1, "ratio: 4"}});
  runs[1].stages = 1;
  const auto arms = GroupRuns(std::move(runs));
  ASSERT_EQ(arms.size(), 2u);
  EXPECT_EQ(arms[0].name, "stages=2");
  EXPECT_EQ(arms[1].name, "stages=1");
}

TEST(Arms, OtherDataStepsOrOptimizersAreSaid) {
  ExampleRun other = {"b", 1, "ratio: 8", "batch { samples: 32 }"};
  other.losses = {1, 2};
  std::vector<RunRecord> runs = Records({{"a", 1, "ratio: 4"}, other});
  runs[1].job.mutable_data()->set_limit_train(100);
  const auto caveats = Caveats(GroupRuns(std::move(runs)));
  EXPECT_THAT(caveats, Contains(HasSubstr("batch.samples is 32, not 64 as for")));
  EXPECT_THAT(caveats, Contains(HasSubstr("data.limit_train is 100, not 0")));
  EXPECT_THAT(caveats, Contains(HasSubstr("b has 2 steps, a has 10")));
}

TEST(Arms, EqualCircumstancesNeedNoCaveat) {
  EXPECT_THAT(Caveats(GroupRuns(Records({{"a", 1, "ratio: 4"}, {"b", 1, "ratio: 8"}}))), IsEmpty());
}

TEST(Arms, RunsPutTogetherByHandAreCheckedToo) {
  std::vector<Arm> arms(1);
  arms[0].name = "mixed";
  arms[0].runs = Records({{"a", 1, "ratio: 4"}, {"b", 1, "ratio: 8"}});
  const auto caveats = Caveats(arms);
  EXPECT_THAT(caveats, Contains(HasSubstr("a and b differ in more than the seed (boundary.ratio)")));
  EXPECT_THAT(caveats, Contains(HasSubstr("2 runs have only 1 seed; a seed counts once")));
  // The seed counts once, with its mean.
  arms[0].runs[1].figures["top1"] = 0.8;
  EXPECT_THAT(arms[0].figure("top1"), ElementsAre(::testing::Pair(1, ::testing::DoubleEq(0.85))));
}

TEST(Arms, ARunThatHasNoLossIsSaid) {
  std::vector<RunRecord> runs = Records({{"a", 1, "ratio: 4"}, {"b", 2, "ratio: 4"}, {"c", 3, "ratio: 4"}});
  EXPECT_THAT(Caveats(GroupRuns(runs)), IsEmpty());
  runs[1].figures.erase("validation_loss");
  EXPECT_THAT(Caveats(GroupRuns(runs)), Contains(HasSubstr("b has no validation_loss (not finite")));
  runs[2].figures.erase("validation_loss");
  EXPECT_THAT(Caveats(GroupRuns(runs)), Contains(HasSubstr("b and 1 more have no validation_loss")));
  runs[0].figures.erase("validation_loss");  // then there is none to mistake for the mean
  EXPECT_THAT(Caveats(GroupRuns(runs)), IsEmpty());
}

TEST(Arms, SkippedStepsAreSaid) {
  std::vector<RunRecord> runs = Records({{"a", 1, "ratio: 4"}});
  runs[0].figures["skipped_steps"] = 2;
  EXPECT_THAT(Caveats(GroupRuns(std::move(runs))), Contains(HasSubstr("a skipped 2 steps")));
}

}  // namespace
}  // namespace resbm::coordinator
