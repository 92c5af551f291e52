#include "model/codec/block_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace resbm::model {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::string Encode(const std::vector<float>& values, WireCodec codec) {
  std::string payload(static_cast<std::size_t>(*PayloadBytesOf(codec, WireDtype::kUint8, values.size())), '\x55');
  EncodeBlocks(values.data(), values.size(), codec, payload.data());
  return payload;
}

std::vector<float> Decode(const std::string& payload, std::size_t count, WireCodec codec) {
  std::vector<float> values(count, kNaN);
  DecodeBlocks(payload.data(), count, codec, values.data());
  return values;
}

float ScaleOf(const std::string& payload, std::size_t block) {
  float scale;
  std::memcpy(&scale, payload.data() + 4 * block, 4);
  return scale;
}

std::vector<float> Random(std::size_t count, std::uint32_t seed, float magnitude) {
  std::vector<float> values;
  std::uint32_t state = seed;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(magnitude * (static_cast<float>(state >> 8) / (1 << 23) - 1));
  }
  return values;
}

TEST(PayloadBytesOf, BlockCodecsHaveAScaleForEach64Values) {
  const auto bytes = [](WireCodec codec, std::uint64_t values) {
    return *PayloadBytesOf(codec, WireDtype::kUint8, values);
  };
  EXPECT_EQ(bytes(WireCodec::kInt8, 0), 0u);
  EXPECT_EQ(bytes(WireCodec::kInt8, 1), 5u);
  EXPECT_EQ(bytes(WireCodec::kInt8, 64), 68u);
  EXPECT_EQ(bytes(WireCodec::kInt8, 65), 73u);
  EXPECT_EQ(bytes(WireCodec::kInt4, 0), 0u);
  EXPECT_EQ(bytes(WireCodec::kInt4, 1), 5u);
  EXPECT_EQ(bytes(WireCodec::kInt4, 64), 36u);
  EXPECT_EQ(bytes(WireCodec::kInt4, 67), 42u);
  EXPECT_EQ(*PayloadBytesOf(WireCodec::kFp16, WireDtype::kFloat16, 67), 134u);
}

TEST(PayloadBytesOf, SaysWhenNoNumberHoldsTheBytes) {
  EXPECT_FALSE(PayloadBytesOf(WireCodec::kInt8, WireDtype::kUint8, ~std::uint64_t{0}).has_value());
  EXPECT_TRUE(PayloadBytesOf(WireCodec::kInt4, WireDtype::kUint8, ~std::uint64_t{0}).has_value());
  EXPECT_FALSE(PayloadBytesOf(WireCodec::kFp32, WireDtype::kFloat32, std::uint64_t{1} << 62).has_value());
}

TEST(BlockCodec, Int8LayoutIsScalesThenBytes) {
  std::vector<float> values(66, 0.0f);
  values[0] = 127;
  values[1] = -127;
  values[2] = 0.5f;  // a tie: to even
  values[3] = 1.5f;
  values[4] = -2.5f;
  values[64] = 254;
  values[65] = -3;
  const std::string payload = Encode(values, WireCodec::kInt8);
  ASSERT_EQ(payload.size(), 8u + 66);
  EXPECT_EQ(ScaleOf(payload, 0), 1);
  EXPECT_EQ(ScaleOf(payload, 1), 2);
  const auto byte = [&](std::size_t i) { return static_cast<int>(static_cast<std::int8_t>(payload[8 + i])); };
  EXPECT_EQ(byte(0), 127);
  EXPECT_EQ(byte(1), -127);
  EXPECT_EQ(byte(2), 0);
  EXPECT_EQ(byte(3), 2);
  EXPECT_EQ(byte(4), -2);
  EXPECT_EQ(byte(5), 0);
  EXPECT_EQ(byte(64), 127);
  EXPECT_EQ(byte(65), -2);  // -1.5, a tie
}

TEST(BlockCodec, Int4PutsTheEvenIndexInTheLowBits) {
  const std::string payload = Encode({7, -7, 1, -1, 3}, WireCodec::kInt4);
  ASSERT_EQ(payload.size(), 4u + 3);
  EXPECT_EQ(ScaleOf(payload, 0), 1);
  EXPECT_EQ(static_cast<std::uint8_t>(payload[4]), 0x97);
  EXPECT_EQ(static_cast<std::uint8_t>(payload[5]), 0xf1);
  EXPECT_EQ(static_cast<std::uint8_t>(payload[6]), 0x03);
  EXPECT_EQ(Decode(payload, 5, WireCodec::kInt4), (std::vector<float>{7, -7, 1, -1, 3}));
}

TEST(BlockCodec, ComesBackWithinHalfAScaleAtEveryMagnitudeAndLength) {
  for (const WireCodec codec : {WireCodec::kInt8, WireCodec::kInt4}) {
    const double levels = codec == WireCodec::kInt8 ? 127 : 7;
    for (const std::size_t count : {1u, 2u, 63u, 64u, 65u, 127u, 1000u}) {
      for (const float magnitude : {1e-30f, 1e-3f, 1.0f, 1e30f}) {
        const std::vector<float> values = Random(count, 7, magnitude);
        const std::vector<float> back = Decode(Encode(values, codec), count, codec);
        for (std::size_t begin = 0; begin < count; begin += 64) {
          const std::size_t end = std::min<std::size_t>(count, begin + 64);
          double largest = 0;
          for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(double{values[i]}));
          for (std::size_t i = begin; i < end; ++i) {
            EXPECT_LE(std::abs(double{back[i]} - values[i]), 0.5 * largest / levels * (1 + 1e-5)) << i;
          }
        }
      }
    }
  }
}

TEST(BlockCodec, ALargeValueCostsOnlyItsOwnBlockPrecision) {
  std::vector<float> values = Random(128, 3, 1e-3f);
  values[5] = 1e6f;
  const std::vector<float> back = Decode(Encode(values, WireCodec::kInt8), 128, WireCodec::kInt8);
  EXPECT_EQ(back[6], 0);
  EXPECT_NEAR(back[70], values[70], 1e-3 / 127);
}

TEST(BlockCodec, ZerosAndTheSmallestNumbersGiveNoNaN) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const float largest = std::numeric_limits<float>::max();
  for (const WireCodec codec : {WireCodec::kInt8, WireCodec::kInt4}) {
    EXPECT_EQ(Decode(Encode({0, -0.0f}, codec), 2, codec), (std::vector<float>{0, 0}));
    for (const float value : Decode(Encode({smallest, -3 * smallest, largest * 0}, codec), 3, codec)) {
      EXPECT_LE(std::abs(value), 4 * smallest);
    }
    const std::vector<float> back = Decode(Encode({largest, -largest}, codec), 2, codec);
    EXPECT_NEAR(back[0] / largest, 1, 1e-6);
    EXPECT_NEAR(back[1] / largest, -1, 1e-6);
  }
}

TEST(BlockCodec, NonFiniteValuesLeaveTheirNeighboursAlone) {
  const std::vector<float> back =
      Decode(Encode({kNaN, kInfinity, -kInfinity, 127, 5}, WireCodec::kInt8), 5, WireCodec::kInt8);
  EXPECT_EQ(back, (std::vector<float>{0, 127, -127, 127, 5}));
}

TEST(BlockCodec, WhatWasDecodedEncodesToTheSameBytes) {
  for (const WireCodec codec : {WireCodec::kInt8, WireCodec::kInt4}) {
    const std::string payload = Encode(Random(200, 11, 0.37f), codec);
    const std::string again = Encode(Decode(payload, 200, codec), codec);
    // The scales may differ in their last bit.
    EXPECT_EQ(payload.substr(16), again.substr(16));
  }
}

TEST(BlockCodec, AnyBytesDecode) {
  std::string payload(4 + 64, '\xff');  // the scale is NaN
  for (const float value : Decode(payload, 64, WireCodec::kInt8)) EXPECT_TRUE(std::isnan(value));
  payload.assign(4 + 2, '\x88');
  for (const float value : Decode(payload, 3, WireCodec::kInt4)) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace resbm::model
