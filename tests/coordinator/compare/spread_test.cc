#include "coordinator/compare/spread.h"

#include <limits>

#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

TEST(Spread, IsMeanSampleDeviationAndRange) {
  const auto spread = SpreadOf({1, 2, 4, 5});
  ASSERT_TRUE(spread.has_value());
  EXPECT_EQ(spread->count, 4);
  EXPECT_DOUBLE_EQ(spread->mean, 3);
  EXPECT_NEAR(spread->deviation, 1.8257418583505538, 1e-12);  // sqrt(10 / 3)
  EXPECT_EQ(spread->min, 1);
  EXPECT_EQ(spread->max, 5);
}

TEST(Spread, OneValueHasNoDeviationAndNoneNoSpread) {
  EXPECT_EQ(SpreadOf({7})->deviation, 0);
  EXPECT_FALSE(SpreadOf({}).has_value());
  EXPECT_FALSE(SpreadOf({std::numeric_limits<double>::quiet_NaN()}).has_value());
  EXPECT_EQ(SpreadOf({std::numeric_limits<double>::infinity(), -3}), (Spread{1, -3, 0, -3, -3}));
}

TEST(Difference, OfTheSameSeedsIsPairedSoThatWhatSeedsShareIsNoNoise) {
  const auto difference = DifferenceOf({{1, 90.0}, {2, 80.0}, {3, 70.0}}, {{1, 89.5}, {2, 79.4}, {3, 69.6}});
  ASSERT_TRUE(difference.has_value());
  EXPECT_TRUE(difference->paired);
  EXPECT_NEAR(difference->mean, -0.5, 1e-12);
  EXPECT_NEAR(*difference->margin, 4.303 * 0.1 / 1.7320508, 1e-6);  // t(2) x 0.1 / sqrt(3)
  EXPECT_EQ(difference->seeds, 3);
}

TEST(Difference, OfOtherSeedsTakesTheNoiseOfBoth) {
  const auto difference = DifferenceOf({{1, 90.0}, {2, 92.0}}, {{3, 88.0}, {4, 90.0}});
  ASSERT_TRUE(difference.has_value());
  EXPECT_FALSE(difference->paired);
  EXPECT_DOUBLE_EQ(difference->mean, -2);
  // Equal variances of 2 and two values each: Welch has 2 degrees of freedom.
  EXPECT_NEAR(*difference->margin, 4.303 * 1.4142135624, 1e-6);
}

TEST(Difference, OfOneSeedHasNoMargin) {
  const auto difference = DifferenceOf({{1, 0.9}, {2, 0.8}}, {{1, 0.5}});
  ASSERT_TRUE(difference.has_value());
  EXPECT_FALSE(difference->margin.has_value());
  EXPECT_EQ(difference->seeds, 1);
  EXPECT_FALSE(DifferenceOf({}, {{1, 0.5}}).has_value());
}

TEST(StudentT, IsThatOfTheTables) {
  EXPECT_DOUBLE_EQ(StudentT95(1), 12.706);
  EXPECT_DOUBLE_EQ(StudentT95(4), 2.776);
  EXPECT_DOUBLE_EQ(StudentT95(30), 2.042);
  EXPECT_DOUBLE_EQ(StudentT95(1000), 2.042);
}

}  // namespace
}  // namespace resbm::coordinator
