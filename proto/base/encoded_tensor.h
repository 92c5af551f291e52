// A tensor in the form in which it crosses a link: bytes, and what is needed to read them. model/ makes
// and reads it, proto/wire carries it; neither needs the other's headers.
#ifndef RESBM_PROTO_BASE_ENCODED_TENSOR_H_
#define RESBM_PROTO_BASE_ENCODED_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace resbm {

// Bytes with a shared owner: copying a SharedBytes copies no bytes. Never changed once shared.
class SharedBytes {
 public:
  SharedBytes() = default;
  // `owner` keeps [data, data + size) alive.
  SharedBytes(std::shared_ptr<const void> owner, const char* data, std::size_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}

  static SharedBytes CopyOf(std::string_view bytes) {
    std::shared_ptr<char[]> copy(new char[bytes.size()]);
    std::memcpy(copy.get(), bytes.data(), bytes.size());
    const char* data = copy.get();
    return SharedBytes(std::move(copy), data, bytes.size());
  }

  const char* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::string_view view() const { return {data_, size_}; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  std::shared_ptr<const void> owner_;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

// Numbers equal those of resbm.v1.WireDtype and resbm.v1.Codec (a test compares them).
enum class WireDtype : std::uint8_t {
  kFloat32 = 1,
  kBfloat16 = 2,
  kFloat16 = 3,
  kUint8 = 4,
  kInt64 = 5,
  kInt32 = 6,
  kInt16 = 7
};
// kInt8, kInt4: blockwise, with dtype kUint8 (bytes); model/codec/block_codec.h says how the bytes lie.
enum class WireCodec : std::uint8_t { kFp32 = 1, kBf16 = 2, kFp16 = 3, kRaw = 4, kInt8 = 5, kInt4 = 6 };

// Values of the flattened tensor that share a scale in a blockwise codec.
inline constexpr std::size_t kBlockSize = 64;

// 0: the codec has no blocks.
constexpr std::uint32_t BlockSizeOf(WireCodec codec) {
  return codec == WireCodec::kInt8 || codec == WireCodec::kInt4 ? static_cast<std::uint32_t>(kBlockSize) : 0;
}

// How the payload of a codec of floating point lies. Nothing for kRaw, whose tensors are integers of a dtype of their
// own, and for what is no codec.
constexpr std::optional<WireDtype> PayloadDtypeOf(WireCodec codec) {
  switch (codec) {
    case WireCodec::kFp32: return WireDtype::kFloat32;
    case WireCodec::kBf16: return WireDtype::kBfloat16;
    case WireCodec::kFp16: return WireDtype::kFloat16;
    case WireCodec::kInt8:
    case WireCodec::kInt4: return WireDtype::kUint8;
    case WireCodec::kRaw: break;
  }
  return std::nullopt;
}

// What kRaw carries.
constexpr bool IsInteger(WireDtype dtype) {
  return dtype == WireDtype::kUint8 || dtype == WireDtype::kInt16 || dtype == WireDtype::kInt32 ||
         dtype == WireDtype::kInt64;
}

constexpr std::size_t SizeOf(WireDtype dtype) {
  switch (dtype) {
    case WireDtype::kFloat32: return 4;
    case WireDtype::kBfloat16: return 2;
    case WireDtype::kFloat16: return 2;
    case WireDtype::kUint8: return 1;
    case WireDtype::kInt64: return 8;
    case WireDtype::kInt32: return 4;
    case WireDtype::kInt16: return 2;
  }
  return 0;
}

// Bytes of a payload of that many values; nothing where 64 bits do not hold them.
constexpr std::optional<std::uint64_t> PayloadBytesOf(WireCodec codec, WireDtype dtype, std::uint64_t values) {
  std::uint64_t bytes = 0;
  if (BlockSizeOf(codec) == 0) {
    if (__builtin_mul_overflow(values, std::uint64_t{SizeOf(dtype)}, &bytes)) return std::nullopt;
    return bytes;
  }
  const std::uint64_t scales = 4 * (values / kBlockSize + (values % kBlockSize > 0 ? 1 : 0));
  const std::uint64_t quantised = codec == WireCodec::kInt4 ? values / 2 + values % 2 : values;
  if (__builtin_add_overflow(scales, quantised, &bytes)) return std::nullopt;
  return bytes;
}

struct EncodedTensor {
  WireCodec codec = WireCodec::kFp32;
  WireDtype dtype = WireDtype::kFloat32;
  // The first is the samples of the micro-batch; contiguous, row-major.
  std::vector<std::int64_t> dims;
  // Payload value = tensor value * 2^scale_exponent. 0 but for fp16.
  int scale_exponent = 0;
  // Values that were NaN or infinite before encoding.
  std::uint64_t non_finite = 0;
  SharedBytes payload;
};

// Those that cross a boundary together.
using EncodedTensors = std::vector<EncodedTensor>;

}  // namespace resbm

#endif  // RESBM_PROTO_BASE_ENCODED_TENSOR_H_
