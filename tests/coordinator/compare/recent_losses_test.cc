#include "coordinator/compare/recent_losses.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

// Above and below in turn, so that there is a deviation to compare with.
double Falling(int step) { return 3 - 0.01 * step + (step % 2 == 0 ? 0.01 : -0.01); }

TEST(RecentLosses, TheSlopeIsOfTheLastStepsPerHundred) {
  RecentLosses losses;
  for (int step = 1; step <= 3; ++step) losses.Add(step, Falling(step));
  EXPECT_FALSE(losses.slope().has_value());
  for (int step = 4; step <= 300; ++step) losses.Add(step, step <= 200 ? 9.0 : Falling(step));
  ASSERT_TRUE(losses.slope().has_value());
  EXPECT_NEAR(*losses.slope(), -1, 0.02);  // what lies 100 steps back is forgotten
}

TEST(RecentLosses, ASpikeIsOfItsStepOnly) {
  RecentLosses losses;
  for (int step = 1; step <= 30; ++step) {
    losses.Add(step, Falling(step));
    EXPECT_FALSE(losses.spike()) << step;
  }
  losses.Add(31, 4);
  EXPECT_TRUE(losses.spike());
  losses.Add(32, Falling(32));
  EXPECT_FALSE(losses.spike());
}

TEST(RecentLosses, WhatIsNotFiniteIsPassedOver) {
  RecentLosses losses;
  for (int step = 1; step <= 30; ++step) losses.Add(step, Falling(step));
  const double before = *losses.slope();
  losses.Add(31, std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(losses.spike());
  EXPECT_EQ(*losses.slope(), before);
}

}  // namespace
}  // namespace resbm::coordinator
