#include "model/codec/block_codec.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace resbm::model {
namespace {

// Adding and taking it away rounds magnitudes below 2^22 to nearest even, and a loop of it becomes vectors.
constexpr float kRounder = 12582912.0f;

float LargestFinite(const float* values, std::size_t count) {
  float largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float magnitude = values[i] < 0 ? -values[i] : values[i];
    // False of NaN.
    const bool finite = magnitude <= std::numeric_limits<float>::max();
    largest = finite && magnitude > largest ? magnitude : largest;
  }
  return largest;
}

// `levels`: 127 or 7. At most 64 values.
float Quantise(const float* values, std::size_t count, float levels, std::int8_t* out) {
  float scale = LargestFinite(values, count) / levels;
  // Where the division rounded up, the largest floats would come back infinite.
  if (scale * levels > std::numeric_limits<float>::max()) scale = std::nextafter(scale, 0.0f);
  for (std::size_t i = 0; i < count; ++i) {
    // Of a block of zeros, and of one so small that its scale is none.
    float q = scale > 0 ? values[i] / scale : 0;
    q = q == q ? q : 0;
    q = q < levels ? q : levels;
    q = q > -levels ? q : -levels;
    out[i] = static_cast<std::int8_t>((q + kRounder) - kRounder);
  }
  return scale;
}

std::size_t Blocks(std::size_t count) { return (count + kBlockSize - 1) / kBlockSize; }

}  // namespace

void EncodeBlocks(const float* values, std::size_t count, WireCodec codec, char* payload) {
  const bool four_bits = codec == WireCodec::kInt4;
  char* out = payload + Blocks(count) * sizeof(float);
  for (std::size_t begin = 0; begin < count; begin += kBlockSize) {
    const std::size_t size = std::min(kBlockSize, count - begin);
    std::int8_t quantised[kBlockSize + 1] = {};
    const float scale = Quantise(values + begin, size, four_bits ? 7.0f : 127.0f, quantised);
    std::memcpy(payload, &scale, sizeof(scale));
    payload += sizeof(scale);
    if (!four_bits) {
      std::memcpy(out, quantised, size);
      out += size;
      continue;
    }
    // A block has an even size but for the last.
    for (std::size_t i = 0; i < size; i += 2) {
      *out++ = static_cast<char>((quantised[i] & 15) | (quantised[i + 1] & 15) << 4);
    }
  }
}

void DecodeBlocks(const char* payload, std::size_t count, WireCodec codec, float* values) {
  const bool four_bits = codec == WireCodec::kInt4;
  const char* in = payload + Blocks(count) * sizeof(float);
  for (std::size_t begin = 0; begin < count; begin += kBlockSize) {
    const std::size_t size = std::min(kBlockSize, count - begin);
    float scale;
    std::memcpy(&scale, payload, sizeof(scale));
    payload += sizeof(scale);
    float* to = values + begin;
    if (!four_bits) {
      for (std::size_t i = 0; i < size; ++i) to[i] = scale * static_cast<float>(static_cast<std::int8_t>(in[i]));
      in += size;
      continue;
    }
    for (std::size_t i = 0; i < size; i += 2) {
      const int byte = static_cast<std::uint8_t>(*in++);
      to[i] = scale * static_cast<float>(((byte & 15) ^ 8) - 8);
      if (i + 1 < size) to[i + 1] = scale * static_cast<float>((byte >> 4 ^ 8) - 8);
    }
  }
}

}  // namespace resbm::model
