#include "model/codec/extent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace resbm::model {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(ExtentOf, NothingHasAbsmaxZero) {
  const Extent extent = ExtentOf(nullptr, 0);
  EXPECT_EQ(extent.absmax, 0);
  EXPECT_EQ(extent.non_finite, 0u);
}

TEST(ExtentOf, TakesTheLargestMagnitudeOfEitherSign) {
  const std::vector<float> values = {1.5f, -7.25f, 3, -0.0f};
  EXPECT_EQ(ExtentOf(values.data(), values.size()).absmax, 7.25f);
}

TEST(ExtentOf, CountsNonFiniteValuesAndLeavesThemOutOfAbsmax) {
  const std::vector<float> values = {1, kInfinity, -kInfinity, kNaN, -2, -kNaN};
  const Extent extent = ExtentOf(values.data(), values.size());
  EXPECT_EQ(extent.absmax, 2);
  EXPECT_EQ(extent.non_finite, 4u);
}

TEST(ExtentOf, OfOnlyNonFiniteValuesIsZero) {
  const std::vector<float> values = {kNaN, kInfinity};
  const Extent extent = ExtentOf(values.data(), values.size());
  EXPECT_EQ(extent.absmax, 0);
  EXPECT_EQ(extent.non_finite, 2u);
}

TEST(ExtentOf, SeesSubnormalValues) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const std::vector<float> values = {0, -smallest};
  EXPECT_EQ(ExtentOf(values.data(), values.size()).absmax, smallest);
}

TEST(ExtentOf, FindsOneValueAnywhereInALongTensor) {
  const std::size_t size = (1u << 16) * 2 + 37;
  for (const std::size_t at : {std::size_t{0}, std::size_t{65535}, std::size_t{65536}, size - 1}) {
    std::vector<float> values(size, 0.5f);
    values[at] = -9;
    values[size / 2] = kNaN;
    const Extent extent = ExtentOf(values.data(), values.size());
    EXPECT_EQ(extent.absmax, 9) << at;
    EXPECT_EQ(extent.non_finite, 1u) << at;
  }
}

TEST(ScaleExponentFor, PutsEveryMagnitudeInItsOctave) {
  const double low = std::ldexp(1, 14);
  const double high = std::ldexp(1, 15);
  const auto check = [&](float absmax) {
    const int exponent = ScaleExponentFor(absmax);
    const double scaled = std::ldexp(static_cast<double>(absmax), exponent);
    EXPECT_GE(scaled, low) << absmax;
    EXPECT_LT(scaled, high) << absmax;
    EXPECT_GE(exponent, kMinScaleExponent);
    EXPECT_LE(exponent, kMaxScaleExponent);
  };
  for (double magnitude = 1e-30; magnitude < 1e31; magnitude *= 1.37) check(static_cast<float>(magnitude));
  for (int power = -149; power <= 127; ++power) {
    check(std::ldexp(1.0f, power));
    check(std::nextafter(std::ldexp(1.0f, power), 0.0f) > 0 ? std::nextafter(std::ldexp(1.0f, power), 0.0f) : 1.0f);
  }
  check(std::numeric_limits<float>::max());
  check(std::numeric_limits<float>::denorm_min());
}

TEST(ScaleExponentFor, AbsmaxZeroGetsScaleOne) { EXPECT_EQ(ScaleExponentFor(0), 0); }

TEST(ScaleExponentFor, ReachesItsBounds) {
  EXPECT_EQ(ScaleExponentFor(std::numeric_limits<float>::max()), kMinScaleExponent);
  EXPECT_EQ(ScaleExponentFor(std::numeric_limits<float>::denorm_min()), kMaxScaleExponent);
}

}  // namespace
}  // namespace resbm::model
