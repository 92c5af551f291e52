#include "proto/data/augment.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::data {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<std::uint8_t> Augmented(const Augmentation& augmentation, const ImageSize& size,
                                    const std::vector<std::uint8_t>& image) {
  std::vector<std::uint8_t> out(image.size(), 77);
  Augment(augmentation, size, image.data(), out.data());
  return out;
}

v1::Data::Augment Options(bool flip, bool crop) {
  v1::Data::Augment options;
  options.set_flip(flip);
  options.set_crop(crop);
  return options;
}

TEST(Augment, NothingDrawnIsTheImage) {
  EXPECT_THAT(Augmented({}, {1, 2, 3}, {1, 2, 3, 4, 5, 6}), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Augment, FlipMirrorsEachRowOfEachChannel) {
  EXPECT_THAT(Augmented({0, 0, true}, {2, 1, 3}, {1, 2, 3, 4, 5, 6}), ElementsAre(3, 2, 1, 6, 5, 4));
}

TEST(Augment, ACropShiftsAndFillsWithZeros) {
  EXPECT_THAT(Augmented({0, 1, false}, {1, 2, 3}, {1, 2, 3, 4, 5, 6}), ElementsAre(2, 3, 0, 5, 6, 0));
  EXPECT_THAT(Augmented({0, -2, false}, {1, 2, 3}, {1, 2, 3, 4, 5, 6}), ElementsAre(0, 0, 1, 0, 0, 4));
  EXPECT_THAT(Augmented({1, 0, false}, {1, 2, 3}, {1, 2, 3, 4, 5, 6}), ElementsAre(4, 5, 6, 0, 0, 0));
  EXPECT_THAT(Augmented({-1, 0, false}, {1, 2, 3}, {1, 2, 3, 4, 5, 6}), ElementsAre(0, 0, 0, 1, 2, 3));
  // No channel sees another's rows.
  EXPECT_THAT(Augmented({1, 0, false}, {2, 1, 2}, {1, 2, 3, 4}), ElementsAre(0, 0, 0, 0));
}

TEST(Augment, TheFlipComesAfterTheCrop) {
  EXPECT_THAT(Augmented({0, 1, true}, {1, 1, 3}, {1, 2, 3}), ElementsAre(0, 3, 2));
}

TEST(Augment, ACropBeyondASmallImageIsAllZeros) {
  for (std::int64_t shift : {-4, -3, 3, 4}) {
    EXPECT_THAT(Augmented({0, shift, false}, {1, 1, 3}, {1, 2, 3}), ElementsAre(0, 0, 0));
    EXPECT_THAT(Augmented({shift, 0, false}, {1, 3, 1}, {1, 2, 3}), ElementsAre(0, 0, 0));
  }
}

// Straight from the definition: pad, take a window, mirror.
TEST(Augment, EveryShiftEqualsPadCropAndMirror) {
  const ImageSize size{2, 5, 6};
  std::vector<std::uint8_t> image(size.bytes());
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::uint8_t>(i + 1);
  for (std::int64_t dy = -4; dy <= 4; ++dy) {
    for (std::int64_t dx = -4; dx <= 4; ++dx) {
      for (bool flip : {false, true}) {
        std::vector<std::uint8_t> expected;
        for (std::int64_t c = 0; c < 2; ++c) {
          for (std::int64_t y = 0; y < 5; ++y) {
            for (std::int64_t x = 0; x < 6; ++x) {
              const std::int64_t from_y = y + dy, from_x = (flip ? 5 - x : x) + dx;
              const bool inside = from_y >= 0 && from_y < 5 && from_x >= 0 && from_x < 6;
              expected.push_back(inside ? image[(c * 5 + from_y) * 6 + from_x] : 0);
            }
          }
        }
        EXPECT_THAT(Augmented({dy, dx, flip}, size, image), ElementsAreArray(expected)) << dy << " " << dx << flip;
      }
    }
  }
}

TEST(Augment, DrawsDependOnSeedEpochAndSampleOnly) {
  const v1::Data::Augment options = Options(true, true);
  int flips = 0, differ_by_epoch = 0, differ_by_seed = 0;
  std::vector<int> shifts(9, 0);
  for (int sample = 0; sample < 9000; ++sample) {
    const Augmentation drawn = DrawAugmentation(options, 1, 0, sample);
    const Augmentation again = DrawAugmentation(options, 1, 0, sample);
    EXPECT_EQ(drawn.shift_x, again.shift_x);
    EXPECT_EQ(drawn.flip, again.flip);
    // Neither option changes what the other draws.
    EXPECT_EQ(DrawAugmentation(Options(true, false), 1, 0, sample).flip, drawn.flip);
    EXPECT_EQ(DrawAugmentation(Options(false, true), 1, 0, sample).shift_y, drawn.shift_y);
    flips += drawn.flip;
    differ_by_epoch += drawn.shift_x != DrawAugmentation(options, 1, 1, sample).shift_x;
    differ_by_seed += drawn.shift_x != DrawAugmentation(options, 2, 0, sample).shift_x;
    ASSERT_LE(std::abs(drawn.shift_y), kCropPadding);
    ++shifts[drawn.shift_y + kCropPadding];
  }
  EXPECT_NEAR(flips, 4500, 200);
  EXPECT_NEAR(differ_by_epoch, 8000, 130);
  EXPECT_NEAR(differ_by_seed, 8000, 130);
  for (int n : shifts) EXPECT_NEAR(n, 1000, 130);
}

TEST(Augment, NoOptionDrawsNothing) {
  for (int sample = 0; sample < 100; ++sample) {
    const Augmentation drawn = DrawAugmentation(v1::Data::Augment(), 1, 0, sample);
    EXPECT_FALSE(drawn.flip);
    EXPECT_EQ(drawn.shift_y, 0);
    EXPECT_EQ(drawn.shift_x, 0);
  }
}

}  // namespace
}  // namespace resbm::data
