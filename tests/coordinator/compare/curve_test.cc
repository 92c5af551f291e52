#include "coordinator/compare/curve.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<CurvePoint> Curve(const std::vector<double>& losses) {
  std::vector<CurvePoint> curve;
  for (std::size_t i = 0; i < losses.size(); ++i) curve.push_back({static_cast<std::int64_t>(i) + 1, losses[i]});
  return curve;
}

TEST(Course, IsTheMeanOfEachPart) {
  EXPECT_THAT(Course(Curve({4, 2, 1, 3, 5, 7}), 3), ElementsAre(CurvePoint{2, 3}, CurvePoint{4, 2}, CurvePoint{6, 6}));
}

TEST(Course, LeavesOutPartsWithoutPoints) {
  EXPECT_THAT(Course(Curve({4, 2}), 4), ElementsAre(CurvePoint{1, 4}, CurvePoint{2, 2}));
  // Steps 2 and 3 were skipped.
  const std::vector<CurvePoint> gap = {{1, 5}, {4, 1}};
  EXPECT_THAT(Course(gap, 2), ElementsAre(CurvePoint{2, 5}, CurvePoint{4, 1}));
  EXPECT_THAT(Course({}, 4), IsEmpty());
}

TEST(LossSlope, IsThatOfTheSecondHalfPerHundredSteps) {
  std::vector<double> losses;
  for (int i = 0; i < 50; ++i) losses.push_back(100);
  for (int i = 0; i < 50; ++i) losses.push_back(2 - 0.01 * i);
  EXPECT_NEAR(*LossSlope(Curve(losses)), -1, 1e-9);
  EXPECT_NEAR(*LossSlope(Curve({5, 4, 3, 3, 3, 3})), 0, 1e-12);
  EXPECT_FALSE(LossSlope(Curve({3, 2, 1})).has_value());
}

TEST(LossSpikes, AreStepsFarAboveWhatCameBefore) {
  std::vector<double> losses;
  for (int i = 0; i < 60; ++i) losses.push_back(1 + 0.01 * std::sin(i));
  EXPECT_THAT(LossSpikes(Curve(losses)), IsEmpty());
  losses[40] = 1.5;
  EXPECT_THAT(LossSpikes(Curve(losses)), ElementsAre(41));
  losses[5] = 9;  // too little before it to say so
  EXPECT_THAT(LossSpikes(Curve(losses)), ElementsAre(41));
}

TEST(LossSpikes, ANoisyOrFallingCurveHasNone) {
  std::vector<double> losses;
  for (int i = 0; i < 200; ++i) losses.push_back(2 * std::exp(-0.01 * i) + 0.2 * std::sin(1.7 * i));
  EXPECT_THAT(LossSpikes(Curve(losses)), IsEmpty());
}

}  // namespace
}  // namespace resbm::coordinator
