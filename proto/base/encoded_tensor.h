// A tensor in the form in which it crosses a link: bytes, and what is needed to read them. model/ makes
// and reads it, proto/wire carries it; neither needs the other's headers.
#ifndef RESBM_PROTO_BASE_ENCODED_TENSOR_H_
#define RESBM_PROTO_BASE_ENCODED_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
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
enum class WireDtype : std::uint8_t { kFloat32 = 1, kBfloat16 = 2, kFloat16 = 3, kUint8 = 4, kInt64 = 5 };
enum class WireCodec : std::uint8_t { kFp32 = 1, kBf16 = 2, kFp16 = 3, kRaw = 4 };

constexpr std::size_t SizeOf(WireDtype dtype) {
  switch (dtype) {
    case WireDtype::kFloat32: return 4;
    case WireDtype::kBfloat16: return 2;
    case WireDtype::kFloat16: return 2;
    case WireDtype::kUint8: return 1;
    case WireDtype::kInt64: return 8;
  }
  return 0;
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

}  // namespace resbm

#endif  // RESBM_PROTO_BASE_ENCODED_TENSOR_H_
