#include "proto/data/image_dataset.h"

#include <cstring>

#include "gtest/gtest.h"

namespace resbm::data {
namespace {

TEST(ImageDataset, SizesAndLabelsAreChecked) {
  EXPECT_TRUE(ImageDataset::Create({1, 1, 2}, 2, {1, 2, 3, 4}, {0, 1}).ok());
  EXPECT_FALSE(ImageDataset::Create({1, 1, 2}, 2, {1, 2, 3}, {0, 1}).ok());
  EXPECT_FALSE(ImageDataset::Create({1, 1, 2}, 2, {}, {}).ok());
  EXPECT_FALSE(ImageDataset::Create({1, 1, 1}, 2, {1}, {2}).ok());
}

TEST(ImageDataset, ASampleIsAnImageAndItsClass) {
  const auto images = *ImageDataset::Create({1, 1, 2}, 10, {1, 2, 3, 4}, {7, 9});
  EXPECT_EQ(images->size(), 2);
  EXPECT_EQ(images->input_dims(), (std::vector<std::int64_t>{1, 1, 2}));
  EXPECT_EQ(images->input(1)[0], 3);
  EXPECT_EQ(images->target_dtype(), WireDtype::kInt64);
  EXPECT_TRUE(images->target_dims().empty());
  std::int64_t label = 0;
  images->WriteTarget(1, reinterpret_cast<char*>(&label));
  EXPECT_EQ(label, 9);
  EXPECT_EQ(images->weight(1), 1);
  ASSERT_NE(images->image_size(), nullptr);
  EXPECT_EQ(*images->image_size(), (ImageSize{1, 1, 2}));
}

}  // namespace
}  // namespace resbm::data
