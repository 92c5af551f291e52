#include "proto/data/dataset_hash.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/data/image_dataset.h"
#include "proto/data/text_dataset.h"

namespace resbm::data {
namespace {

struct Images {
  ImageSize size{1, 2, 3};
  std::int64_t classes = 10;
  std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(24, 7);
  std::vector<std::uint8_t> labels = {1, 2, 3, 4};
};

std::uint64_t Hash(Images images) {
  return HashOf(
      **ImageDataset::Create(images.size, images.classes, std::move(images.pixels), std::move(images.labels)));
}

std::uint64_t HashOfText(const std::string& text, std::int64_t context) {
  return HashOf(**TextDataset::Create({text.begin(), text.end()}, context));
}

TEST(DatasetHash, CopiesAreAlike) {
  EXPECT_EQ(Hash(Images()), Hash(Images()));
  EXPECT_EQ(HashOfText("abcdefg", 3), HashOfText("abcdefg", 3));
}

TEST(DatasetHash, EveryPartCounts) {
  const std::uint64_t hash = Hash(Images());
  Images pixel, label, shape, classes, order;
  pixel.pixels[23] = 8;
  EXPECT_NE(Hash(pixel), hash);
  label.labels[0] = 2;
  EXPECT_NE(Hash(label), hash);
  shape.size = {1, 3, 2};
  EXPECT_NE(Hash(shape), hash);
  classes.classes = 11;
  EXPECT_NE(Hash(classes), hash);
  std::swap(order.labels[1], order.labels[2]);
  EXPECT_NE(Hash(order), hash);
  EXPECT_NE(HashOfText("abcdefh", 3), HashOfText("abcdefg", 3));
  EXPECT_NE(HashOfText("abcdefg", 2), HashOfText("abcdefg", 3));
  // A zero of the text is not the padding behind its end.
  EXPECT_NE(HashOfText(std::string("abcde\0", 6), 3), HashOfText("abcde", 3));
}

}  // namespace
}  // namespace resbm::data
