#include "model/codec/codec.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace resbm::model {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
const c10::Device kCpu(c10::DeviceType::CPU);

at::Tensor Normal(at::IntArrayRef shape, double deviation, std::uint64_t seed = 1) {
  return at::empty(shape, at::TensorOptions().dtype(at::kFloat))
      .normal_(0, deviation, at::detail::createCPUGenerator(seed));
}

at::Tensor MustDecode(const EncodedTensor& encoded) {
  absl::StatusOr<at::Tensor> decoded = Decode(encoded, kCpu);
  if (!decoded.ok()) throw std::runtime_error(std::string(decoded.status().message()));
  return *decoded;
}

// The payload as a plain reading of its fp16 numbers.
std::vector<double> HalfValues(const EncodedTensor& encoded) {
  std::vector<double> values;
  for (std::size_t i = 0; i + 1 < encoded.payload.size(); i += 2) {
    std::uint16_t bits;
    std::memcpy(&bits, encoded.payload.data() + i, 2);
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) magnitude = fraction == 0 ? kInfinity : kNaN;
    values.push_back(bits >> 15 ? -magnitude : magnitude);
  }
  return values;
}

bool BitEqual(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.is_contiguous() && b.is_contiguous() && a.scalar_type() == b.scalar_type() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

TEST(Codec, Fp32CrossesBitForBitWithoutACopyOut) {
  const at::Tensor x = Normal({2, 3, 4, 5}, 1);
  const EncodedTensor encoded = Encode(x, WireCodec::kFp32);
  EXPECT_EQ(encoded.dims, (std::vector<std::int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(encoded.dtype, WireDtype::kFloat32);
  EXPECT_EQ(encoded.scale_exponent, 0);
  EXPECT_EQ(encoded.payload.data(), static_cast<const char*>(x.const_data_ptr()));
  const at::Tensor back = MustDecode(encoded);
  EXPECT_TRUE(BitEqual(x, back));
  EXPECT_NE(back.const_data_ptr(), x.const_data_ptr());
}

TEST(Codec, ThePayloadOutlivesItsTensor) {
  EncodedTensor encoded;
  {
    const at::Tensor x = Normal({64, 64}, 1);
    encoded = Encode(x, WireCodec::kFp32);
  }
  EXPECT_TRUE(BitEqual(MustDecode(encoded), Normal({64, 64}, 1)));
}

TEST(Codec, PayloadSizesAreExactlyDtypeTimesValues) {
  const at::Tensor x = Normal({16, 2, 14, 14}, 1);
  EXPECT_EQ(Encode(x, WireCodec::kFp32).payload.size(), 16u * 2 * 14 * 14 * 4);
  EXPECT_EQ(Encode(x, WireCodec::kBf16).payload.size(), 16u * 2 * 14 * 14 * 2);
  EXPECT_EQ(Encode(x, WireCodec::kFp16).payload.size(), 16u * 2 * 14 * 14 * 2);
}

TEST(Codec, Bf16KeepsEightBitsRoundedToNearestEven) {
  const at::Tensor x = at::tensor(at::ArrayRef<float>({1.0f, 1.00390625f, 1.01171875f, -3.3e38f, 1e-38f}));
  const at::Tensor back = MustDecode(Encode(x, WireCodec::kBf16));
  EXPECT_EQ(back[0].item<float>(), 1.0f);
  EXPECT_EQ(back[1].item<float>(), 1.0f);       // 1 + 2^-8, a tie: to even
  EXPECT_EQ(back[2].item<float>(), 1.015625f);  // 1 + 3 * 2^-8, a tie: to even
  EXPECT_NEAR(back[3].item<float>() / -3.3e38f, 1, 1.0 / 256);
  EXPECT_NEAR(back[4].item<float>() / 1e-38f, 1, 1.0 / 256);
}

TEST(Codec, Fp16ScaleHoldsAtEveryMagnitude) {
  for (double magnitude = 1e-30; magnitude < 2e30; magnitude *= 10) {
    const at::Tensor x = Normal({3, 50}, magnitude);
    const EncodedTensor encoded = Encode(x, WireCodec::kFp16);
    double largest = 0;
    for (const double value : HalfValues(encoded)) largest = std::max(largest, std::abs(value));
    EXPECT_GE(largest, std::ldexp(1, 14)) << magnitude;
    EXPECT_LE(largest, std::ldexp(1, 15)) << magnitude;  // rounding may reach the bound
    const at::Tensor error = MustDecode(encoded).sub(x).abs().div(x.abs());
    EXPECT_LE(error.max().item<double>(), std::ldexp(1, -11)) << magnitude;  // half a unit of 11 bits
  }
}

TEST(Codec, Fp16CarriesSubnormalsExactlyWhenTheyAreAll) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const at::Tensor x = at::tensor(at::ArrayRef<float>({smallest, -3 * smallest, 1000 * smallest, 0.0f}));
  const EncodedTensor encoded = Encode(x, WireCodec::kFp16);
  EXPECT_GT(encoded.scale_exponent, 127);
  EXPECT_TRUE(BitEqual(MustDecode(encoded), x));
}

TEST(Codec, Fp16CarriesValuesBeyondItsOwnRange) {
  const at::Tensor x = at::tensor(at::ArrayRef<float>({65504.0f, 65536.0f, -1e6f, 3.0e38f, 1.0f}));
  const EncodedTensor encoded = Encode(x, WireCodec::kFp16);
  EXPECT_EQ(encoded.non_finite, 0u);
  const at::Tensor back = MustDecode(encoded);
  EXPECT_NEAR(back[3].item<float>() / 3.0e38f, 1, 1e-3);
  for (const double value : HalfValues(encoded)) EXPECT_TRUE(std::isfinite(value));
  const at::Tensor alone = at::tensor(at::ArrayRef<float>({70000.0f, -65505.0f, 2.0f}));
  EXPECT_LE(MustDecode(Encode(alone, WireCodec::kFp16)).sub(alone).abs().div(alone.abs()).max().item<double>(), 1e-3);
}

TEST(Codec, Fp16RoundTripIsExactForWhatItCanHold) {
  // Eleven bits over 25 octaves below the largest.
  const at::Tensor x = at::arange(-2047, 2048, at::TensorOptions().dtype(at::kFloat)).mul(std::ldexp(1.0, -40));
  EXPECT_TRUE(BitEqual(MustDecode(Encode(x, WireCodec::kFp16)), x));
  const at::Tensor twice = MustDecode(Encode(Normal({100}, 1e-6), WireCodec::kFp16));
  EXPECT_TRUE(BitEqual(MustDecode(Encode(twice, WireCodec::kFp16)), twice));
}

TEST(Codec, AbsmaxZeroGetsScaleOne) {
  const at::Tensor x = at::empty({2, 3}, at::TensorOptions().dtype(at::kFloat)).zero_();
  const EncodedTensor encoded = Encode(x, WireCodec::kFp16);
  EXPECT_EQ(encoded.scale_exponent, 0);
  EXPECT_TRUE(BitEqual(MustDecode(encoded), x));
}

TEST(Codec, NonFiniteValuesAreCountedAndAbsmaxIsOverTheRest) {
  const at::Tensor x = at::tensor(at::ArrayRef<float>({1.0f, kInfinity, -kInfinity, kNaN, -2.0f}));
  for (const WireCodec codec : {WireCodec::kFp32, WireCodec::kBf16, WireCodec::kFp16}) {
    const EncodedTensor encoded = Encode(x, codec);
    EXPECT_EQ(encoded.non_finite, 3u);
    const at::Tensor back = MustDecode(encoded);
    EXPECT_EQ(back[0].item<float>(), 1.0f);
    EXPECT_EQ(back[1].item<float>(), kInfinity);
    EXPECT_EQ(back[2].item<float>(), -kInfinity);
    EXPECT_TRUE(std::isnan(back[3].item<float>()));
    EXPECT_EQ(back[4].item<float>(), -2.0f);
  }
  EXPECT_EQ(Encode(x, WireCodec::kFp16).scale_exponent, 13);
}

// What arrives as infinity is counted where it is sent.
TEST(Codec, FloatsThatRoundToInfinityCountAsNonFinite) {
  const float largest = std::numeric_limits<float>::max();
  for (const WireCodec codec : {WireCodec::kFp16, WireCodec::kBf16}) {
    const float limit = codec == WireCodec::kFp16 ? 0x1.ffep127f : 0x1.ffp127f;
    const float below = std::nextafter(limit, 0.0f);
    const EncodedTensor over = Encode(at::tensor(at::ArrayRef<float>({largest, -limit, below, 1, -largest})), codec);
    EXPECT_EQ(over.non_finite, 3u);
    const at::Tensor back = MustDecode(over);
    EXPECT_EQ(back.isfinite().logical_not().sum().item<int>(), 3);
    const EncodedTensor finite = Encode(at::tensor(at::ArrayRef<float>({below, -below, 1})), codec);
    EXPECT_EQ(finite.non_finite, 0u);
    EXPECT_TRUE(MustDecode(finite).isfinite().all().item<bool>());
  }
  const EncodedTensor whole = Encode(at::tensor(at::ArrayRef<float>({largest})), WireCodec::kFp32);
  EXPECT_EQ(whole.non_finite, 0u);
}

TEST(Codec, RawPassesIntegersUnchanged) {
  const at::Tensor images = at::arange(0, 24, at::TensorOptions().dtype(at::kByte)).view({2, 3, 4});
  const at::Tensor labels = at::arange(-5, 5, at::TensorOptions().dtype(at::kLong));
  EXPECT_EQ(Encode(images, WireCodec::kRaw).dtype, WireDtype::kUint8);
  EXPECT_EQ(Encode(labels, WireCodec::kRaw).dtype, WireDtype::kInt64);
  EXPECT_TRUE(BitEqual(MustDecode(Encode(images, WireCodec::kRaw)), images));
  EXPECT_TRUE(BitEqual(MustDecode(Encode(labels, WireCodec::kRaw)), labels));
}

TEST(Codec, AnyLayoutCrossesInRowMajorOrder) {
  const at::Tensor x = Normal({2, 3, 4, 5}, 1);
  const at::Tensor innermost = x.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor expanded = Normal({2, 3, 1, 1}, 1).expand({2, 3, 4, 5});
  for (const WireCodec codec : {WireCodec::kFp32, WireCodec::kBf16, WireCodec::kFp16}) {
    EXPECT_EQ(Encode(innermost, codec).payload.view(), Encode(x, codec).payload.view());
    EXPECT_EQ(Encode(expanded, codec).payload.view(), Encode(expanded.contiguous(), codec).payload.view());
    EXPECT_TRUE(MustDecode(Encode(innermost, codec)).is_contiguous());
  }
}

TEST(Codec, APayloadAtAnOddAddressDecodesToTheSame) {
  const at::Tensor x = Normal({3, 7, 5}, 1e-3);
  for (const WireCodec codec : {WireCodec::kFp32, WireCodec::kBf16, WireCodec::kFp16}) {
    EncodedTensor encoded = Encode(x, codec);
    const at::Tensor expected = MustDecode(encoded);
    for (const std::size_t shift : {1, 2, 3, 5}) {
      const std::string moved = std::string(shift, 'x') + std::string(encoded.payload.view());
      const SharedBytes whole = SharedBytes::CopyOf(moved);
      encoded.payload = SharedBytes(whole.owner(), whole.data() + shift, whole.size() - shift);
      const at::Tensor back = MustDecode(encoded);
      EXPECT_TRUE(BitEqual(back, expected));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(back.const_data_ptr()) % 64, 0u);
      encoded = Encode(x, codec);
    }
  }
}

TEST(Codec, TheOperatorsOfOtherDevicesMeasureTheSame) {
  at::Tensor x = Normal({5, 1000}, 1e-20);
  x[2][7] = kNaN;
  x[4][999] = -kInfinity;
  x[0][0] = std::numeric_limits<float>::denorm_min();
  const Extent fast = ExtentOf(x.const_data_ptr<float>(), static_cast<std::size_t>(x.numel()));
  const Extent general = ExtentByOperators(x);
  EXPECT_EQ(fast.absmax, general.absmax);
  EXPECT_EQ(fast.non_finite, general.non_finite);
  EXPECT_EQ(general.non_finite, 2u);
}

TEST(Codec, FieldsThatDoNotFitTogetherAreRefused) {
  const EncodedTensor good = Encode(Normal({2, 3}, 1), WireCodec::kFp16);
  const auto refused = [](EncodedTensor encoded) {
    const absl::StatusOr<at::Tensor> decoded = Decode(encoded, kCpu);
    return decoded.status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_FALSE(refused(good));
  EncodedTensor bad = good;
  bad.dims = {2, 4};
  EXPECT_TRUE(refused(bad));
  bad.dims = {-2, -3};
  EXPECT_TRUE(refused(bad));
  bad.dims = {std::int64_t{1} << 62, 4, 2};
  EXPECT_TRUE(refused(bad));
  bad.dims = {};
  EXPECT_TRUE(refused(bad));
  bad.dims.assign(9, 1);
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.dtype = WireDtype::kBfloat16;
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.codec = static_cast<WireCodec>(77);
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.scale_exponent = kMaxScaleExponent + 1;
  EXPECT_TRUE(refused(bad));
  bad.scale_exponent = kMinScaleExponent - 1;
  EXPECT_TRUE(refused(bad));
  bad = Encode(Normal({2, 3}, 1), WireCodec::kFp32);
  bad.scale_exponent = 1;
  EXPECT_TRUE(refused(bad));
}

TEST(Codec, BlockwiseCodecsComeBackWithinHalfAScaleInAnyLayout) {
  const at::Tensor x = Normal({3, 5, 7, 9}, 1e-4);
  for (const auto& [codec, levels, bytes] :
       {std::tuple(WireCodec::kInt8, 127, 945 + 15 * 4), std::tuple(WireCodec::kInt4, 7, 473 + 15 * 4)}) {
    const EncodedTensor encoded = Encode(x, codec);
    EXPECT_EQ(encoded.dims, (std::vector<std::int64_t>{3, 5, 7, 9}));
    EXPECT_EQ(encoded.dtype, WireDtype::kUint8);
    EXPECT_EQ(encoded.scale_exponent, 0);
    EXPECT_EQ(encoded.payload.size(), static_cast<std::size_t>(bytes));
    const at::Tensor back = MustDecode(encoded);
    EXPECT_EQ(back.sizes(), x.sizes());
    const double bound = 0.5 * x.abs().max().item<double>() / levels;
    EXPECT_LE(back.sub(x).abs().max().item<double>(), bound * (1 + 1e-5));
    EXPECT_GT(back.sub(x).abs().max().item<double>(), 0);
    EXPECT_EQ(Encode(x.contiguous(at::MemoryFormat::ChannelsLast), codec).payload.view(), encoded.payload.view());
  }
}

TEST(Codec, BlockwiseCodecsCountNonFiniteValuesAndStayFinite) {
  const at::Tensor x = at::tensor(at::ArrayRef<float>({1.0f, kInfinity, -kInfinity, kNaN, -2.0f}));
  for (const WireCodec codec : {WireCodec::kInt8, WireCodec::kInt4}) {
    const EncodedTensor encoded = Encode(x, codec);
    EXPECT_EQ(encoded.non_finite, 3u);
    const at::Tensor back = MustDecode(encoded);
    EXPECT_EQ(ExtentByOperators(back).non_finite, 0u);
    EXPECT_EQ(back[1].item<float>(), 2.0f);
    EXPECT_EQ(back[3].item<float>(), 0.0f);
    EXPECT_EQ(back[4].item<float>(), -2.0f);
  }
}

TEST(Codec, BlockwiseFieldsThatDoNotFitTogetherAreRefused) {
  for (const WireCodec codec : {WireCodec::kInt8, WireCodec::kInt4}) {
    const EncodedTensor good = Encode(Normal({2, 65}, 1), codec);
    EXPECT_TRUE(Decode(good, kCpu).ok());
    const auto refused = [](const EncodedTensor& encoded) {
      return Decode(encoded, kCpu).status().code() == absl::StatusCode::kInvalidArgument;
    };
    EncodedTensor bad = good;
    bad.payload = SharedBytes(good.payload.owner(), good.payload.data(), good.payload.size() - 1);
    EXPECT_TRUE(refused(bad));
    bad = good;
    bad.dims = {2, 66};
    EXPECT_TRUE(refused(bad));
    bad.dims = {std::int64_t{1} << 62, 4, 2};
    EXPECT_TRUE(refused(bad));
    bad = good;
    bad.dtype = WireDtype::kFloat32;
    EXPECT_TRUE(refused(bad));
    bad = good;
    bad.scale_exponent = 1;
    EXPECT_TRUE(refused(bad));
  }
}

TEST(Codec, AnEmptyTensorCrossesBlockwise) {
  const EncodedTensor encoded = Encode(Normal({0, 4}, 1), WireCodec::kInt4);
  EXPECT_EQ(encoded.payload.size(), 0u);
  EXPECT_EQ(MustDecode(encoded).numel(), 0);
}

TEST(Codec, RandomBytesOfTheRightSizeDecode) {
  std::string bytes(4096, '\0');
  std::uint32_t state = 7;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  for (const WireCodec codec : {WireCodec::kFp32, WireCodec::kBf16, WireCodec::kFp16}) {
    EncodedTensor encoded = Encode(Normal({1}, 1), codec);
    encoded.scale_exponent = codec == WireCodec::kFp16 ? kMaxScaleExponent : 0;
    encoded.dims = {static_cast<std::int64_t>(4096 / SizeOf(encoded.dtype))};
    encoded.payload = SharedBytes::CopyOf(bytes);
    EXPECT_EQ(MustDecode(encoded).numel(), encoded.dims[0]);
  }
}

}  // namespace
}  // namespace resbm::model
