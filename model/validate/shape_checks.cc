#include "model/validate/shape_checks.h"

#include "absl/strings/str_join.h"

namespace resbm::model {
namespace {

// No layer of a model that this trains comes near; keeps every product below within 64 bits.
constexpr std::int64_t kMaxDimension = std::int64_t{1} << 24;
constexpr std::int64_t kMaxValues = std::int64_t{1} << 40;

}  // namespace

std::string Text(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

absl::Status CheckShape(const Shape& shape, const char* what) {
  std::int64_t values = 1;
  if (shape.empty() || shape.size() > 7) return Invalid(what, " ", Text(shape), " must have 1 to 7 dimensions");
  for (const std::int64_t dim : shape) {
    if (dim < 1 || dim > kMaxDimension) return Invalid(what, " ", Text(shape), " has an impossible dimension");
    values *= dim;
    if (values > kMaxValues) return Invalid(what, " ", Text(shape), " is too large");
  }
  return absl::OkStatus();
}

absl::Status CheckCount(std::int64_t count, const char* what) {
  if (count < 1 || count > kMaxDimension) return Invalid(what, " is ", count, ", must be from 1 to ", kMaxDimension);
  return absl::OkStatus();
}

absl::Status CheckGroups(int groups, int channels, const char* what) {
  if (groups < 1 || channels % groups != 0) {
    return Invalid(what, ": ", groups, " groups do not divide ", channels, " channels");
  }
  return absl::OkStatus();
}

absl::Status CheckImage(const Shape& input, int channels) {
  if (input.size() != 3 || input[0] != channels) {
    return Invalid("takes [", channels, ", height, width], its input shape is ", Text(input));
  }
  return absl::OkStatus();
}

absl::Status CheckSequence(const Shape& input, int width) {
  if (input.size() == 2 && input[1] == width) return absl::OkStatus();
  return Invalid("takes [positions, ", width, "], its input shape is ", Text(input));
}

Shape Convolved(const Shape& input, int out_channels, int kernel, int stride) {
  const auto size = [&](std::int64_t in) { return (in + 2 * (kernel / 2) - kernel) / stride + 1; };
  return {out_channels, size(input[1]), size(input[2])};
}

}  // namespace resbm::model
