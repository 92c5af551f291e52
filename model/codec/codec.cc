#include "model/codec/codec.h"

#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "model/codec/block_codec.h"
#include "model/torch/device.h"
#include "model/codec/encoded_check.h"
#include "proto/base/status.h"

namespace resbm::model {
namespace {

at::ScalarType ScalarTypeOf(WireDtype dtype) {
  switch (dtype) {
    case WireDtype::kFloat32: return at::kFloat;
    case WireDtype::kBfloat16: return at::kBFloat16;
    case WireDtype::kFloat16: return at::kHalf;
    case WireDtype::kUint8: return at::kByte;
    case WireDtype::kInt64: return at::kLong;
    case WireDtype::kInt32: return at::kInt;
    case WireDtype::kInt16: return at::kShort;
  }
  return at::kFloat;
}

WireDtype IntegerDtypeOf(at::ScalarType type) {
  switch (type) {
    case at::kByte: return WireDtype::kUint8;
    case at::kShort: return WireDtype::kInt16;
    case at::kInt: return WireDtype::kInt32;
    case at::kLong: return WireDtype::kInt64;
    default: TORCH_CHECK(false, "the raw codec takes uint8, int16, int32 and int64, not ", type);
  }
}

// The magnitude that rounding to 8 or 11 bits carries to 2^128; infinity if there is none.
float RoundsToInfinityFrom(WireCodec codec) {
  switch (codec) {
    case WireCodec::kBf16: return 0x1.ffp127f;
    case WireCodec::kFp16: return 0x1.ffep127f;
    default: return std::numeric_limits<float>::infinity();
  }
}

// 2^exponent itself may be no float; two factors always are. Growing is exact, and shrinking rounds only in
// the second factor.
void ScaleInPlace(at::Tensor& values, int exponent) {
  if (exponent == 0) return;
  if (std::abs(exponent) <= 126) {
    values.mul_(std::ldexp(1.0, exponent));
    return;
  }
  const int first = exponent / 2;
  values.mul_(std::ldexp(1.0, first)).mul_(std::ldexp(1.0, exponent - first));
}

at::Tensor ScaledToHalf(const at::Tensor& values, int exponent) {
  if (exponent == 0) return values.to(at::kHalf);
  at::Tensor scaled;
  if (std::abs(exponent) <= 126) {
    scaled = at::mul(values, std::ldexp(1.0, exponent));
  } else {
    scaled = values.clone();
    ScaleInPlace(scaled, exponent);
  }
  return scaled.to(at::kHalf);
}

// Bytes in host memory that keep their tensor alive.
SharedBytes PayloadOf(const at::Tensor& tensor) {
  at::Tensor host = tensor;
  if (!tensor.is_cpu()) {
    host = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(true));
    host.copy_(tensor, /*non_blocking=*/true);
    SynchroniseStream(tensor.device());
  }
  auto owner = std::make_shared<at::Tensor>(host);
  const char* data = static_cast<const char*>(owner->const_data_ptr());
  return SharedBytes(std::move(owner), data, host.nbytes());
}

Extent ExtentOfTensor(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return ExtentOf(tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel()));
  return ExtentByOperators(tensor);
}

}  // namespace

Extent ExtentByOperators(const at::Tensor& tensor) {
  Extent extent;
  if (tensor.numel() == 0) return extent;
  const at::Tensor bits = tensor.view(at::kInt).bitwise_and(0x7fffffff);
  const at::Tensor finite = bits.lt(0x7f800000);
  const at::Tensor largest = bits.mul(finite).max().to(at::kLong);
  const at::Tensor non_finite = finite.logical_not().sum(at::kLong);
  const at::Tensor both = at::stack({largest, non_finite}).cpu();  // one transfer
  const auto magnitude_bits = static_cast<std::int32_t>(both.const_data_ptr<std::int64_t>()[0]);
  std::memcpy(&extent.absmax, &magnitude_bits, sizeof(magnitude_bits));
  extent.non_finite = static_cast<std::uint64_t>(both.const_data_ptr<std::int64_t>()[1]);
  return extent;
}

EncodedTensor Encode(const at::Tensor& tensor, WireCodec codec) {
  c10::NoGradGuard no_grad;
  const at::Tensor source = tensor.detach().contiguous();
  EncodedTensor encoded;
  encoded.codec = codec;
  encoded.dims.assign(source.sizes().begin(), source.sizes().end());
  if (codec == WireCodec::kRaw) {
    encoded.dtype = IntegerDtypeOf(source.scalar_type());
    encoded.payload = PayloadOf(source);
    return encoded;
  }
  TORCH_CHECK(source.scalar_type() == at::kFloat, "the wire's codecs take fp32, not ", source.scalar_type());
  const Extent extent = ExtentOfTensor(source);
  encoded.non_finite = extent.non_finite;
  // They are finite here, but would not be where they arrive.
  if (const float limit = RoundsToInfinityFrom(codec); extent.absmax >= limit) {
    const at::Tensor magnitudes = source.abs();
    encoded.non_finite += static_cast<std::uint64_t>(
        magnitudes.ge(limit).logical_and_(magnitudes.isfinite()).sum(at::kLong).item<std::int64_t>());
  }
  switch (codec) {
    case WireCodec::kFp32:
      encoded.dtype = WireDtype::kFloat32;
      encoded.payload = PayloadOf(source);
      break;
    case WireCodec::kBf16:
      encoded.dtype = WireDtype::kBfloat16;
      encoded.payload = PayloadOf(source.to(at::kBFloat16));
      break;
    case WireCodec::kFp16:
      encoded.dtype = WireDtype::kFloat16;
      encoded.scale_exponent = ScaleExponentFor(extent.absmax);
      encoded.payload = PayloadOf(ScaledToHalf(source, encoded.scale_exponent));
      break;
    case WireCodec::kInt8:
    case WireCodec::kInt4: {
      encoded.dtype = WireDtype::kUint8;
      const at::Tensor host = source.cpu();
      const auto count = static_cast<std::size_t>(host.numel());
      const std::optional<std::uint64_t> bytes = PayloadBytesOf(codec, encoded.dtype, count);
      at::Tensor payload = at::empty({static_cast<std::int64_t>(bytes.value())}, at::TensorOptions().dtype(at::kByte));
      EncodeBlocks(host.const_data_ptr<float>(), count, codec, static_cast<char*>(payload.mutable_data_ptr()));
      encoded.payload = PayloadOf(payload);
      break;
    }
    case WireCodec::kRaw: break;
  }
  return encoded;
}

absl::StatusOr<at::Tensor> Decode(const EncodedTensor& encoded, const at::Device& device) {
  RESBM_RETURN_IF_ERROR(CheckConsistent(encoded));
  c10::NoGradGuard no_grad;
  if (BlockSizeOf(encoded.codec) > 0) {
    at::Tensor values = at::empty(encoded.dims, at::TensorOptions().dtype(at::kFloat));
    DecodeBlocks(encoded.payload.data(), static_cast<std::size_t>(values.numel()), encoded.codec,
                 values.mutable_data_ptr<float>());
    return values.to(device);
  }
  const at::ScalarType type = ScalarTypeOf(encoded.dtype);
  const at::ScalarType result_type = encoded.codec == WireCodec::kRaw ? type : at::kFloat;
  const char* data = encoded.payload.data();
  at::Tensor values;
  if (device.is_cpu() && type != result_type && reinterpret_cast<std::uintptr_t>(data) % SizeOf(encoded.dtype) == 0) {
    // The conversion makes the fresh tensor.
    values = at::from_blob(const_cast<char*>(data), encoded.dims, at::TensorOptions().dtype(type)).to(result_type);
  } else {
    at::Tensor staged = at::empty(encoded.dims, at::TensorOptions().dtype(type).pinned_memory(!device.is_cpu()));
    if (encoded.payload.size() > 0) std::memcpy(staged.mutable_data_ptr(), data, encoded.payload.size());
    values = staged.to(device, /*non_blocking=*/true).to(result_type);
  }
  ScaleInPlace(values, -encoded.scale_exponent);
  return values;
}

}  // namespace resbm::model
