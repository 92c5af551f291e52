#include "coordinator/sweep/early_stop.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The step after which it was hopeless, 0 = never.
int StoppedAt(EarlyStop* early, int steps, double (*loss)(int step)) {
  for (int step = 1; step <= steps; ++step) {
    if (!early->OnStep(step, loss(step), false)) return step;
  }
  return 0;
}

TEST(EarlyStop, ARunThatStaysFarAboveTheBestEndsAtItsHalf) {
  EarlyStop early(100, 0.5, std::vector<double>(kChecks, 1.0));
  EXPECT_EQ(StoppedAt(&early, 100, [](int) { return 1.6; }), 50);
}

TEST(EarlyStop, ARunWithinTheMarginGoesOn) {
  EarlyStop early(100, 0.5, std::vector<double>(kChecks, 1.0));
  EXPECT_EQ(StoppedAt(&early, 100, [](int) { return 1.5; }), 0);
  EXPECT_EQ(early.tenths().size(), 10u);
}

TEST(EarlyStop, ARunThatComesBackStartsToCountAgain) {
  EarlyStop early(100, 0.5, std::vector<double>(kChecks, 1.0));
  // Good between steps 31 and 40: five checks in a row are only complete at 90.
  EXPECT_EQ(StoppedAt(&early, 100, [](int step) { return step > 30 && step <= 40 ? 1.0 : 2.0; }), 90);
}

TEST(EarlyStop, LossesThatAreNotFiniteFailTheCheck) {
  EarlyStop early(20, 0.5, std::vector<double>(kChecks, 1.0));
  EXPECT_EQ(StoppedAt(&early, 20, [](int) { return kNan; }), 10);
  EarlyStop skipping(20, 0.5, std::vector<double>(kChecks, 1.0));
  bool alive = true;
  for (int step = 1; step <= 10; ++step) alive = skipping.OnStep(step, 1.0, /*skipped=*/true);
  EXPECT_FALSE(alive);
}

TEST(EarlyStop, WithoutAFinishedRunOrAMarginNothingIsHopeless) {
  EarlyStop first(100, 0.5, {});
  EXPECT_EQ(StoppedAt(&first, 100, [](int) { return 1e9; }), 0);
  EarlyStop never(100, 0, std::vector<double>(kChecks, 1.0));
  EXPECT_EQ(StoppedAt(&never, 100, [](int) { return 1e9; }), 0);
}

TEST(EarlyStop, ARunOfAFewStepsIsNeverStopped) {
  EarlyStop early(9, 0.5, std::vector<double>(kChecks, 1.0));
  EXPECT_EQ(StoppedAt(&early, 9, [](int) { return 1e9; }), 0);
}

TEST(EarlyStop, TenthsAreMeansOfTheirSteps) {
  EarlyStop early(20, 0.5, {});
  for (int step = 1; step <= 4; ++step) early.OnStep(step, step, false);
  EXPECT_THAT(early.tenths(), ElementsAre(1.5, 3.5));
}

TEST(BestTenths, AreTheSmallerOnes) {
  EXPECT_THAT(BestTenths({1, 4, kNan}, {2, 3, 5}), ElementsAre(1, 3, 5));
  EXPECT_THAT(BestTenths({}, {2, 3}), ElementsAre(2, 3));
  EXPECT_THAT(BestTenths({}, {}), IsEmpty());
}

}  // namespace
}  // namespace resbm::coordinator
