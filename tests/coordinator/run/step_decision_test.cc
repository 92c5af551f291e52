#include "coordinator/run/step_decision.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::Computed Stage(std::vector<double> squared_norms, double loss_sum = 0) {
  v1::Computed c;
  for (double s : squared_norms) c.add_squared_norms(s);
  c.set_loss_sum(loss_sum);
  return c;
}

TEST(Decide, DividesOnceByTheWeightOfTheStep) {
  const auto d = Decide({Stage({16}), Stage({9}, 20)}, 10, 0);
  EXPECT_EQ(d.decision, v1::Commit::APPLY);
  EXPECT_DOUBLE_EQ(d.loss, 2);
  EXPECT_DOUBLE_EQ(d.gradient_norm, 0.5);  // sqrt(25) / 10
  EXPECT_EQ(d.gradient_scale, 0.1f);
  EXPECT_THAT(d.reasons, IsEmpty());
}

TEST(Decide, ClipsAllStagesByTheNormOfTheWholeModel) {
  const auto d = Decide({Stage({1600, 0}), Stage({900})}, 10, 1);  // norm 5
  EXPECT_EQ(d.gradient_scale, static_cast<float>(1.0 / (5.0 + 1e-6) / 10));
}

TEST(Decide, DoesNotEnlargeGradientsBelowTheLimit) {
  EXPECT_EQ(Decide({Stage({1})}, 1, 100).gradient_scale, 1.0f);
}

TEST(Decide, SumsNormsInParameterOrderHoweverTheyAreSplit) {
  // In another order these sums differ in the last bits.
  const std::vector<double> norms = {1e16, 1, 1, 1, 1, 1, 1};
  const auto whole = Decide({Stage(norms)}, 1, 1);
  const auto split = Decide({Stage({1e16, 1}), Stage({1, 1, 1}), Stage({1, 1})}, 1, 1);
  EXPECT_EQ(whole.gradient_norm, split.gradient_norm);
  EXPECT_EQ(whole.gradient_scale, split.gradient_scale);
}

TEST(Decide, SkipsWhenOneStageCountedANonFiniteValueAndNamesIt) {
  v1::Computed bad = Stage({1});
  bad.add_non_finite()->set_where("group1.0 gradient");
  bad.mutable_non_finite(0)->set_count(3);
  const auto d = Decide({Stage({1}), bad, Stage({1}, 2)}, 4, 0);
  EXPECT_EQ(d.decision, v1::Commit::SKIP);
  EXPECT_THAT(d.reasons, ElementsAre("stage 1: group1.0 gradient: 3 non-finite values"));
  EXPECT_EQ(d.gradient_scale, 0);
}

TEST(Decide, SkipsOnANonFiniteLossOrNorm) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Decide({Stage({1}, std::nan(""))}, 1, 0).decision, v1::Commit::SKIP);
  EXPECT_EQ(Decide({Stage({1}), Stage({inf}, 1)}, 1, 0).decision, v1::Commit::SKIP);
  EXPECT_THAT(Decide({Stage({1}), Stage({inf}, 1)}, 1, 0).reasons, ElementsAre(HasSubstr("stage 1")));
  // Finite each, infinite together.
  EXPECT_EQ(Decide({Stage({1.7e308, 1.7e308}, 1)}, 1, 0).decision, v1::Commit::SKIP);
}

TEST(CheckWeight, TheLastStagesCountMustBeThatOfTheData) {
  v1::Computed last = Stage({1});
  last.set_weight(23);
  EXPECT_TRUE(CheckWeight({Stage({1}), last}, 23).ok());
  const absl::Status status = CheckWeight({Stage({1}), last}, 24);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage 1 counted 23 "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the data has 24 "));
  EXPECT_FALSE(CheckWeight({last, Stage({1})}, 23).ok());
}

TEST(Decide, TakesTheLossScaleOutOfNormsAndGradients) {
  const auto plain = Decide({Stage({1600, 0}), Stage({900}, 20)}, 10, 1);
  const double scale = 65536;
  const auto scaled = Decide({Stage({1600 * scale * scale, 0}), Stage({900 * scale * scale}, 20)}, 10, 1, scale);
  EXPECT_EQ(scaled.loss, plain.loss);  // the loss itself is not scaled
  EXPECT_EQ(scaled.gradient_norm, plain.gradient_norm);
  EXPECT_EQ(scaled.gradient_scale, static_cast<float>(plain.gradient_scale / scale));
}

}  // namespace
}  // namespace resbm::coordinator
