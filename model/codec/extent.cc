#include "model/codec/extent.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace resbm::model {
namespace {

constexpr std::int32_t kMagnitudeMask = 0x7fffffff;
constexpr std::int32_t kInfinityBits = 0x7f800000;
// Short enough that a 32-bit count cannot overflow, and a loop that the compiler turns into vectors.
constexpr std::size_t kChunk = std::size_t{1} << 16;

}  // namespace

Extent ExtentOf(const float* values, std::size_t count) {
  // Magnitudes order like their bits, read as integers.
  std::int32_t largest = 0;
  std::uint64_t non_finite = 0;
  for (std::size_t begin = 0; begin < count; begin += kChunk) {
    const std::size_t end = std::min(count, begin + kChunk);
    std::int32_t chunk_largest = 0;
    std::int32_t chunk_non_finite = 0;
    for (std::size_t i = begin; i < end; ++i) {
      std::int32_t bits;
      std::memcpy(&bits, values + i, sizeof(bits));
      bits &= kMagnitudeMask;
      const std::int32_t finite = bits < kInfinityBits ? 1 : 0;
      chunk_non_finite += 1 - finite;
      const std::int32_t magnitude = bits & -finite;
      chunk_largest = magnitude > chunk_largest ? magnitude : chunk_largest;
    }
    largest = std::max(largest, chunk_largest);
    non_finite += static_cast<std::uint64_t>(chunk_non_finite);
  }
  Extent extent;
  std::memcpy(&extent.absmax, &largest, sizeof(largest));
  extent.non_finite = non_finite;
  return extent;
}

int ScaleExponentFor(float absmax) {
  if (!(absmax > 0)) return 0;
  int exponent = 0;
  std::frexp(absmax, &exponent);  // absmax in [2^(exponent-1), 2^exponent)
  return 15 - exponent;
}

}  // namespace resbm::model
