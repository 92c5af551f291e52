#include "coordinator/html/series.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

Series Of(const std::vector<double>& values) {
  Series series;
  for (std::size_t i = 0; i < values.size(); ++i) series.Add(static_cast<std::int64_t>(i) + 1, values[i]);
  return series;
}

TEST(Series, PassesOverWhatIsNotFinite) {
  Series series = Of({1, std::nan(""), std::numeric_limits<double>::infinity(), 2});
  EXPECT_THAT(series.steps, ElementsAre(1, 4));
  EXPECT_THAT(series.values, ElementsAre(1, 2));
}

TEST(Series, ThinningKeepsFirstLastSmallestAndLargestOfEachPart) {
  const Series thin = Thin(Of({5, 1, 9, 4, 6, 7, 7, 7, 7, 7, 2, 8}), 2);
  EXPECT_THAT(thin.steps, ElementsAre(1, 2, 3, 6, 7, 11, 12));
  EXPECT_THAT(thin.values, ElementsAre(5, 1, 9, 7, 7, 2, 8));
}

TEST(Series, AShortCurveIsNotThinned) {
  const Series series = Of({3, 2, 1, 2, 3, 2, 1, 2});
  EXPECT_EQ(Thin(series, 2), series);
  EXPECT_EQ(Thin(Series(), 2), Series());
}

TEST(Series, ALongCurveKeepsItsPeaksAndBecomesSmall) {
  std::vector<double> values(100'000, 1.0);
  values[77'777] = 50;
  values[12'345] = -50;
  const Series thin = Thin(Of(values), 500);
  EXPECT_LE(thin.steps.size(), 2000u);
  EXPECT_EQ(thin.steps.front(), 1);
  EXPECT_EQ(thin.steps.back(), 100'000);
  EXPECT_THAT(thin.values, ::testing::Contains(50));
  EXPECT_THAT(thin.values, ::testing::Contains(-50));
  EXPECT_TRUE(std::is_sorted(thin.steps.begin(), thin.steps.end()));
}

TEST(Series, SmoothingTakesAsManyValuesOnBothSides) {
  const Series smooth = Smooth(Of({1, 4, 7, 1, 10}), 3);
  EXPECT_THAT(smooth.steps, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(smooth.values, Pointwise(DoubleNear(1e-12), {1.0, 4.0, 4.0, 6.0, 10.0}));
  EXPECT_EQ(Smooth(Series(), 3), Series());
}

TEST(Series, TheWindowOfSmoothingIsOddAndGrowsWithTheCurve) {
  EXPECT_EQ(SmoothingWindow(0), 1);
  EXPECT_EQ(SmoothingWindow(99), 1);
  EXPECT_EQ(SmoothingWindow(100), 3);
  EXPECT_EQ(SmoothingWindow(5000), 101);
}

TEST(Histogram, CountsEveryValueOnce) {
  const Histogram histogram = HistogramOf({0.0, 1.0, 2.0, 3.0, 3.9, 4.0}, 4);
  EXPECT_EQ(histogram.from, 0);
  EXPECT_EQ(histogram.width, 1);
  EXPECT_THAT(histogram.counts, ElementsAre(1, 1, 1, 3));
  EXPECT_EQ(histogram.above, 0);
}

TEST(Histogram, RareLargeValuesLeaveRoomForTheOthers) {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(1 + 0.01 * i);
  values.push_back(500);
  const Histogram histogram = HistogramOf(values, 10);
  EXPECT_EQ(histogram.above, 1);
  EXPECT_NEAR(histogram.from + 10 * histogram.width, 1.99, 1e-9);
}

TEST(Histogram, OfEqualValuesIsOneBinAndOfNoneIsEmpty) {
  const Histogram equal = HistogramOf({2.0, 2.0, 2.0}, 10);
  EXPECT_EQ(equal.width, 0);
  EXPECT_THAT(equal.counts, ElementsAre(3));
  EXPECT_EQ(HistogramOf({}, 10), Histogram());
}

}  // namespace
}  // namespace resbm::coordinator
