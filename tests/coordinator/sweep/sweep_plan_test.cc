#include "coordinator/sweep/sweep_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Names(const SweepSpec& spec) {
  std::vector<std::string> names;
  const auto arms = PlanSweep(spec);
  EXPECT_TRUE(arms.ok()) << arms.status();
  if (!arms.ok()) return names;
  for (const SweepArm& arm : *arms) names.push_back(arm.name);
  return names;
}

TEST(SweepPlan, ABoundaryIsMeasuredAgainstTheUncompressedOne) {
  const auto arms = PlanSweep({"boundary.ratio", {"4", "8"}, ""});
  ASSERT_TRUE(arms.ok()) << arms.status();
  ASSERT_EQ(arms->size(), 3u);
  EXPECT_EQ((*arms)[0].name, "kind=IDENTITY");
  EXPECT_THAT((*arms)[0].set, ElementsAre("boundary.kind=IDENTITY"));
  EXPECT_EQ((*arms)[2].name, "ratio=8");
  EXPECT_EQ((*arms)[2].value, "8");
  EXPECT_THAT((*arms)[2].set, ElementsAre("boundary.ratio=8"));
}

TEST(SweepPlan, OtherFieldsAreMeasuredAgainstTheFirstValue) {
  EXPECT_THAT(Names({"batch.samples", {"32", "64"}, ""}), ElementsAre("samples=32", "samples=64"));
}

TEST(SweepPlan, TheBaselineMayBeChosenAndIsNotTrainedTwice) {
  EXPECT_THAT(Names({"boundary.ratio", {"4", "8"}, "none"}), ElementsAre("ratio=4", "ratio=8"));
  EXPECT_THAT(Names({"boundary.ratio", {"4", "8"}, "boundary.ratio=2"}), ElementsAre("ratio=2", "ratio=4", "ratio=8"));
  EXPECT_THAT(Names({"boundary.kind", {"RESBM", "IDENTITY"}, ""}), ElementsAre("kind=IDENTITY", "kind=RESBM"));
}

TEST(SweepPlan, WhatCannotBeSweptIsSaid) {
  EXPECT_THAT(PlanSweep({"boundary.ratio", {}, ""}).status().message(), HasSubstr("--values is empty"));
  EXPECT_THAT(PlanSweep({"boundary.ratio", {"4", "4"}, ""}).status().message(), HasSubstr("4 is there twice"));
  EXPECT_THAT(PlanSweep({"", {"4"}, ""}).status().message(), HasSubstr("no field"));
  EXPECT_THAT(PlanSweep({"boundary.ratio=3", {"4"}, ""}).status().message(), HasSubstr("no field"));
  EXPECT_THAT(PlanSweep({"boundary.ratio", {"4"}, "identity"}).status().message(), HasSubstr("PATH=VALUE"));
}

TEST(SplitValues, AtCommasThatAreNotWithinAValue) {
  EXPECT_THAT(SplitValues("4, 8,16"), ElementsAre("4", "8", "16"));
  EXPECT_THAT(SplitValues("{a: 1, b: 2},[1, 2],'x,y'"), ElementsAre("{a: 1, b: 2}", "[1, 2]", "'x,y'"));
  EXPECT_THAT(SplitValues(" , "), IsEmpty());
}

TEST(FolderName, HasNoCharacterThatAPathMinds) {
  EXPECT_EQ(FolderName("ratio=8"), "ratio_8");
  EXPECT_EQ(FolderName("file='../x y'"), "file__.._x_y_");
  EXPECT_EQ(FolderName(std::string(300, 'a')).size(), 80u);
}

TEST(FractionOfSamples, LeavesAtLeastABatch) {
  EXPECT_EQ(FractionOfSamples(60000, 0.1, 96), 6000);
  EXPECT_EQ(FractionOfSamples(60000, 0.0001, 96), 96);
  EXPECT_EQ(FractionOfSamples(50, 0.5, 96), 50);
}

}  // namespace
}  // namespace resbm::coordinator
