#include "coordinator/compare/job_fields.h"

#include <google/protobuf/text_format.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

v1::Job Job(const std::string& text) {
  v1::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &job)) << text;
  return job;
}

TEST(JobFields, HavePathsAsSetTakesThem) {
  EXPECT_THAT(JobFields(Job("model { mlp { hidden: 8 hidden: 16 } } boundary { kind: IDENTITY } name: 'x'")),
              ElementsAre(Pair("boundary.kind", "IDENTITY"), Pair("model.mlp", "{}"), Pair("model.mlp.hidden[0]", "8"),
                          Pair("model.mlp.hidden[1]", "16"), Pair("name", "\"x\"")));
}

TEST(JobFields, ADefaultThatIsWrittenOutIsNoField) {
  EXPECT_THAT(JobFields(Job("boundary { ratio: 16 } batch { samples: 64 }")), IsEmpty());
  // norm_groups: 0 is no norm, absent is the rule.
  EXPECT_THAT(JobFields(Job("boundary { norm_groups: 0 }")), ElementsAre(Pair("boundary.norm_groups", "0")));
}

TEST(JobFields, AtACutPointBeingSetIsWhatMatters) {
  EXPECT_THAT(JobDifferences(Job("boundary { ratio: 4 } cut_point { after: 'a' }"),
                             Job("boundary { ratio: 4 } cut_point { after: 'a' boundary { ratio: 16 } }")),
              ElementsAre(FieldDifference{"cut_point[0].boundary.ratio", "-", "16"}));
}

// Each of these trains another model, though what is written out is the schema's default.
TEST(JobDifferences, KnowWhereAnUnsetFieldIsNotItsDefault) {
  EXPECT_THAT(JobDifferences(Job("boundary { kind: BOTTLENECK }"), Job("boundary { kind: BOTTLENECK ratio: 16 }")),
              ElementsAre(FieldDifference{"boundary.ratio", "4", "16"}));
  EXPECT_THAT(JobDifferences(Job("boundary { kind: BOTTLENECK }"), Job("boundary { kind: BOTTLENECK ratio: 4 }")),
              IsEmpty());
  EXPECT_THAT(JobDifferences(Job("cut_point { after: 'a' boundary { kind: BOTTLENECK } }"),
                             Job("boundary { ratio: 16 } cut_point { after: 'a' boundary { kind: BOTTLENECK } }")),
              ElementsAre(FieldDifference{"cut_point[0].boundary.ratio", "4", "-"}));
  EXPECT_THAT(JobDifferences(Job("precision: BF16"), Job("precision: BF16 wire { activations: FP16 }")),
              ElementsAre(FieldDifference{"wire.activations", "BF16", "FP16"}));
  EXPECT_THAT(JobDifferences(Job("precision: BF16"), Job("precision: BF16 wire { gradients: BF16 }")), IsEmpty());
}

TEST(JobDifferences, LeaveOutSeedAndName) {
  EXPECT_THAT(JobDifferences(Job("seed: 1 name: 'a'"), Job("seed: 2 name: 'b' boundary { ratio: 16 }")), IsEmpty());
  EXPECT_THAT(JobDifferences(Job("optimizer { sgd {} }"), Job("optimizer { adamw {} }")),
              ElementsAre(FieldDifference{"optimizer.adamw", "-", "{}"}, FieldDifference{"optimizer.sgd", "{}", "-"}));
}

TEST(JobDifferences, WhatIsNotSetHasItsDefault) {
  EXPECT_THAT(JobDifferences(Job(""), Job("boundary { kind: IDENTITY norm_groups: 2 }")),
              ElementsAre(FieldDifference{"boundary.kind", "RESBM", "IDENTITY"},
                          FieldDifference{"boundary.norm_groups", "-", "2"}));
  EXPECT_THAT(JobDifferences(Job("optimizer { sgd { learning_rate: 1 } }"), Job("optimizer { sgd {} }")),
              ElementsAre(FieldDifference{"optimizer.sgd.learning_rate", "1", "0.1"}));
}

}  // namespace
}  // namespace resbm::coordinator
