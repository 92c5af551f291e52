// What checks of layers and of boundaries share: shapes without the batch dimension, within bounds that keep every
// product in 64 bits.
#ifndef RESBM_MODEL_VALIDATE_SHAPE_CHECKS_H_
#define RESBM_MODEL_VALIDATE_SHAPE_CHECKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace resbm::model {

using Shape = std::vector<std::int64_t>;

// "[16, 14, 14]".
std::string Text(const Shape& shape);

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// 1 to 7 dimensions, none below 1 or absurd.
absl::Status CheckShape(const Shape& shape, const char* what);
// From 1 to 2^24.
absl::Status CheckCount(std::int64_t count, const char* what);
absl::Status CheckGroups(int groups, int channels, const char* what);
// [channels, height, width].
absl::Status CheckImage(const Shape& input, int channels);
// [positions, width].
absl::Status CheckSequence(const Shape& input, int width);

// [C, H, W] by a convolution with padding kernel / 2.
Shape Convolved(const Shape& input, int out_channels, int kernel, int stride);

}  // namespace resbm::model

#endif  // RESBM_MODEL_VALIDATE_SHAPE_CHECKS_H_
