#include "coordinator/sweep/sweep_plan.h"

#include <google/protobuf/text_format.h>

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

TEST(FolderNames, AreNumberedWhereTheyWouldBeTheSame) {
  const std::string longest(100, 'a');
  EXPECT_THAT(FolderNames({{"ratio=4", "4", {}}, {"ratio 4", "4", {}}, {longest + "1", "", {}}, {longest + "2", "", {}}}),
              ElementsAre("ratio_4", "ratio_4-2", std::string(80, 'a'), std::string(72, 'a') + "-4"));
}

v1::Job Job(const std::string& more) {
  v1::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "model { resnet { stem { channels: 16 } group { blocks: 2 channels: 16 } } } data { mnist { directory: '/x' } } "
      "optimizer { sgd {} } " + more,
      &job));
  return job;
}

TEST(TrainTheSame, LooksAtWhatTheBoundariesAreNotAtWhatIsWritten) {
  const std::string own = " cut_point { after: 'group0.0' boundary { ratio: 8 } }", cut = " cut_point { after: 'group0.0' }";
  EXPECT_TRUE(TrainTheSame(Job("boundary { ratio: 4 }" + own), Job("boundary { ratio: 16 }" + own)));
  EXPECT_FALSE(TrainTheSame(Job("boundary { ratio: 4 }" + cut), Job("boundary { ratio: 16 }" + cut)));
  EXPECT_TRUE(TrainTheSame(Job("boundary { kind: LINEAR low_dim { depth: 1 } }" + cut),
                           Job("boundary { kind: LINEAR low_dim { depth: 3 } }" + cut)));
  EXPECT_FALSE(TrainTheSame(Job("boundary { ratio: 4 } batch { samples: 32 }" + own),
                            Job("boundary { ratio: 4 } batch { samples: 64 }" + own)));
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
