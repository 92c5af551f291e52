#include "proto/data/text_dataset.h"

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::data {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<const TextDataset> Text(const std::string& text, std::int64_t context) {
  auto dataset = TextDataset::Create({text.begin(), text.end()}, context);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  return *dataset;
}

std::string Input(const Dataset& text, std::int64_t index) {
  return std::string(reinterpret_cast<const char*>(text.input(index)), text.input_dims()[0]);
}

std::vector<int> Targets(const Dataset& text, std::int64_t index) {
  std::vector<std::int16_t> targets(text.input_dims()[0] + 1, 12345);
  text.WriteTarget(index, reinterpret_cast<char*>(targets.data()));
  EXPECT_EQ(targets.back(), 12345) << "written beyond the target";
  return {targets.begin(), targets.end() - 1};
}

TEST(TextDataset, EachByteIsPredictedByTheOneBeforeIt) {
  const auto text = Text("abcdefg", 3);
  EXPECT_EQ(text->size(), 2);
  EXPECT_EQ(Input(*text, 0), "abc");
  EXPECT_THAT(Targets(*text, 0), ElementsAre('b', 'c', 'd'));
  EXPECT_EQ(Input(*text, 1), "def");
  EXPECT_THAT(Targets(*text, 1), ElementsAre('e', 'f', 'g'));
  EXPECT_EQ(text->weight(0), 3);
  EXPECT_EQ(text->weight(1), 3);
  EXPECT_EQ(text->target_dtype(), WireDtype::kInt16);
  EXPECT_THAT(text->target_dims(), ElementsAre(3));
  EXPECT_EQ(text->image_size(), nullptr);
}

TEST(TextDataset, TheLastWindowIsKeptAndMasked) {
  const auto text = Text("abcdefghi", 3);
  EXPECT_EQ(text->size(), 3);
  EXPECT_EQ(Input(*text, 2), std::string("ghi"));
  EXPECT_THAT(Targets(*text, 2), ElementsAre('h', 'i', -1));
  EXPECT_EQ(text->weight(2), 2);
  const auto one_more = Text(
      "abcdefghij"
      "k",
      3);
  EXPECT_EQ(one_more->size(), 4);
  EXPECT_EQ(Input(*one_more, 3), std::string("jk\0", 3));
  EXPECT_THAT(Targets(*one_more, 3), ElementsAre('k', -1, -1));
  EXPECT_EQ(one_more->weight(3), 1);
}

TEST(TextDataset, WeightsAddUpToTheBytesThatArePredicted) {
  for (int length = 2; length < 40; ++length) {
    for (const int context : {1, 2, 7, 50}) {
      const auto text = Text(std::string(length, 'x'), context);
      std::int64_t weight = 0;
      for (std::int64_t i = 0; i < text->size(); ++i) {
        const std::vector<int> targets = Targets(*text, i);
        EXPECT_EQ(std::count(targets.begin(), targets.end(), 'x'), text->weight(i));
        EXPECT_GT(text->weight(i), 0);
        weight += text->weight(i);
      }
      EXPECT_EQ(weight, length - 1) << length << " " << context;
    }
  }
}

TEST(TextDataset, BytesAboveAsciiAreNoMask) {
  const auto text = Text(std::string("\xff\xfe\x80"), 2);
  EXPECT_THAT(Targets(*text, 0), ElementsAre(0xfe, 0x80));
}

TEST(TextDataset, RefusesWhatPredictsNothing) {
  EXPECT_EQ(TextDataset::Create({}, 4).status().message(), "0 bytes of text; at least 2 are needed");
  EXPECT_EQ(TextDataset::Create({1}, 4).status().message(), "1 byte of text; at least 2 are needed");
  EXPECT_EQ(TextDataset::Create({1, 2}, 0).status().message(), "a context of 0 bytes; 1 to 1048576");
}

TEST(TextDataset, AContextThatNoTextFillsIsRefusedBeforeItTakesMemory) {
  for (const std::int64_t context : {kLongestContext + 1, std::int64_t{1} << 40, std::int64_t{1} << 62}) {
    EXPECT_EQ(TextDataset::Create({'a', 'b'}, context).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace resbm::data
