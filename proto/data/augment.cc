#include "proto/data/augment.h"

#include <algorithm>
#include <cstring>

#include "proto/data/counter_random.h"

namespace resbm::data {

Augmentation DrawAugmentation(const v1::Data::Augment& options, std::uint64_t seed, std::int64_t epoch,
                              std::int64_t sample) {
  const CounterRandom random = CounterRandom(seed).Stream(kAugmentPurpose).Stream(epoch).Stream(sample);
  Augmentation drawn;
  if (options.flip()) drawn.flip = random.Below(2, 0) == 1;
  if (options.crop()) {
    drawn.shift_y = static_cast<std::int64_t>(random.Below(2 * kCropPadding + 1, 1)) - kCropPadding;
    drawn.shift_x = static_cast<std::int64_t>(random.Below(2 * kCropPadding + 1, 2)) - kCropPadding;
  }
  return drawn;
}

void Augment(const Augmentation& augmentation, const ImageSize& size, const std::uint8_t* image, std::uint8_t* out) {
  // Columns of `out`, before the flip, that lie within the image.
  const std::int64_t begin = std::clamp<std::int64_t>(-augmentation.shift_x, 0, size.width);
  const std::int64_t end = std::clamp<std::int64_t>(size.width - augmentation.shift_x, begin, size.width);
  for (std::int64_t row = 0; row < size.channels * size.height; ++row, out += size.width) {
    const std::int64_t y = row % size.height + augmentation.shift_y;
    std::memset(out, 0, size.width);
    if (y < 0 || y >= size.height) continue;
    const std::uint8_t* source = image + (row + augmentation.shift_y) * size.width + augmentation.shift_x;
    if (begin < end) std::memcpy(out + begin, source + begin, end - begin);
    if (augmentation.flip) std::reverse(out, out + size.width);
  }
}

}  // namespace resbm::data
