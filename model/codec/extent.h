// How large the values of a tensor are: what the wire's scale and the check for non-finite values need.
#ifndef RESBM_MODEL_CODEC_EXTENT_H_
#define RESBM_MODEL_CODEC_EXTENT_H_

#include <cstddef>
#include <cstdint>

namespace resbm::model {

struct Extent {
  float absmax = 0;  // over the finite values; 0 if there are none
  std::uint64_t non_finite = 0;
};

// One pass, no allocation.
Extent ExtentOf(const float* values, std::size_t count);

// The power of two that brings `absmax` into [2^14, 2^15), as an exponent in [kMinScaleExponent,
// kMaxScaleExponent]: below fp16's largest value 65504, and as far above its subnormals as possible.
// 0 for absmax 0.
int ScaleExponentFor(float absmax);

// Of the largest float and of the smallest subnormal.
inline constexpr int kMinScaleExponent = 14 - 127;
inline constexpr int kMaxScaleExponent = 14 + 149;

}  // namespace resbm::model

#endif  // RESBM_MODEL_CODEC_EXTENT_H_
