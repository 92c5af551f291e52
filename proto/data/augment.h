// Random flips and crops of training images, on bytes, before they go to the first stage.
#ifndef RESBM_PROTO_DATA_AUGMENT_H_
#define RESBM_PROTO_DATA_AUGMENT_H_

#include <cstdint>

#include "proto/data/dataset.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::data {

// How far an image is padded with zeros on each side before it is cropped back.
inline constexpr std::int64_t kCropPadding = 4;

struct Augmentation {
  std::int64_t shift_y = 0;  // rows from which the image is taken, in [-kCropPadding, kCropPadding]
  std::int64_t shift_x = 0;
  bool flip = false;  // left to right, after the crop
};

// Depends on nothing but its arguments: crop and flip draw apart, so that one does not change the other.
Augmentation DrawAugmentation(const v1::Data::Augment& options, std::uint64_t seed, std::int64_t epoch,
                              std::int64_t sample);

// image, out: `size.bytes()` bytes each, not overlapping. Every byte of `out` is written.
void Augment(const Augmentation& augmentation, const ImageSize& size, const std::uint8_t* image, std::uint8_t* out);

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_AUGMENT_H_
