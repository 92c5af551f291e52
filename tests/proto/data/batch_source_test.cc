#include "proto/data/batch_source.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "proto/data/augment.h"
#include "proto/data/image_dataset.h"
#include "proto/data/text_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::data {
namespace {

using ::testing::ElementsAre;

constexpr ImageSize kSize{2, 3, 4};

// Image i: bytes 24 i, 24 i + 1, ...; label i % 10.
std::shared_ptr<const ImageDataset> Numbered(int count) {
  std::vector<std::uint8_t> pixels(count * kSize.bytes()), labels(count);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i);
  for (int i = 0; i < count; ++i) labels[i] = static_cast<std::uint8_t>(i % 10);
  return *ImageDataset::Create(kSize, 10, std::move(pixels), std::move(labels));
}

std::vector<std::int64_t> Labels(const EncodedTensor& tensor) {
  EXPECT_EQ(tensor.codec, WireCodec::kRaw);
  EXPECT_EQ(tensor.dtype, WireDtype::kInt64);
  std::vector<std::int64_t> labels(tensor.payload.size() / 8);
  std::memcpy(labels.data(), tensor.payload.data(), tensor.payload.size());
  EXPECT_EQ(tensor.dims, std::vector<std::int64_t>{static_cast<std::int64_t>(labels.size())});
  return labels;
}

std::string Image(const Dataset& dataset, std::int64_t index) {
  return std::string(reinterpret_cast<const char*>(dataset.input(index)), kSize.bytes());
}

BatchSource::Options SmallOptions() {
  BatchSource::Options options;
  options.seed = 5;
  options.samples = 8;
  options.micro_batches = 3;
  options.evaluation_micro_batch = 4;
  return options;
}

TEST(BatchSource, AMicroBatchHoldsThePlannedSamples) {
  const auto train = Numbered(21);
  const BatchSource source(SmallOptions(), train, nullptr);
  EXPECT_EQ(source.steps_per_epoch(), 3);
  for (int step = 1; step <= 6; ++step) {
    const StepBatch batch = source.Plan(step);
    std::size_t next = 0;
    for (std::size_t m = 0; m < batch.micro_batch_sizes.size(); ++m) {
      const EncodedTensor inputs = source.Inputs(batch, m);
      EXPECT_EQ(inputs.codec, WireCodec::kRaw);
      EXPECT_EQ(inputs.dtype, WireDtype::kUint8);
      EXPECT_EQ(inputs.scale_exponent, 0);
      EXPECT_EQ(inputs.non_finite, 0u);
      EXPECT_THAT(inputs.dims, ElementsAre(batch.micro_batch_sizes[m], 2, 3, 4));
      const std::vector<std::int64_t> labels = Labels(source.Targets(batch, m));
      ASSERT_EQ(labels.size(), static_cast<std::size_t>(batch.micro_batch_sizes[m]));
      std::string expected;
      for (std::int64_t label : labels) {
        EXPECT_EQ(label, batch.indices[next] % 10);
        expected += Image(*train, batch.indices[next++]);
      }
      EXPECT_EQ(inputs.payload.view(), expected);
    }
    EXPECT_EQ(next, batch.indices.size());
  }
  EXPECT_THAT(source.Plan(1).micro_batch_sizes, ElementsAre(3, 3, 2));
  EXPECT_THAT(source.Plan(3).micro_batch_sizes, ElementsAre(2, 2, 1));
}

TEST(BatchSource, AugmentationGoesWithTheSampleNotItsPlace) {
  const auto train = Numbered(21);
  BatchSource::Options options = SmallOptions();
  options.augment.set_flip(true);
  options.augment.set_crop(true);
  const BatchSource by_three(options, train, nullptr);
  options.micro_batches = 1;
  options.samples = 21;
  const BatchSource whole(options, train, nullptr);
  std::string split;
  for (int step = 4; step <= 6; ++step) {  // the second epoch
    const StepBatch batch = by_three.Plan(step);
    for (int m = 0; m < 3; ++m) split += by_three.Inputs(batch, m).payload.view();
  }
  const StepBatch batch = whole.Plan(2);
  EXPECT_EQ(whole.Inputs(batch, 0).payload.view(), split);
  std::string first(kSize.bytes(), '\0');
  Augment(DrawAugmentation(options.augment, 5, 1, batch.indices[0]), kSize, train->input(batch.indices[0]),
          reinterpret_cast<std::uint8_t*>(first.data()));
  EXPECT_EQ(split.substr(0, first.size()), first);
}

TEST(BatchSource, EvaluationTakesTheTestSetInOrderAndUnchanged) {
  const auto test = Numbered(10);
  BatchSource::Options options = SmallOptions();
  options.augment.set_crop(true);
  const BatchSource source(options, nullptr, test);
  EXPECT_THAT(source.evaluation_sizes(), ElementsAre(4, 4, 2));
  int next = 0;
  for (int m = 0; m < 3; ++m) {
    const EncodedTensor inputs = source.EvaluationInputs(m);
    EXPECT_THAT(inputs.dims, ElementsAre(source.evaluation_sizes()[m], 2, 3, 4));
    std::string expected;
    for (std::int64_t label : Labels(source.EvaluationTargets(m))) {
      EXPECT_EQ(label, next % 10);
      expected += Image(*test, next++);
    }
    EXPECT_EQ(inputs.payload.view(), expected);
  }
  EXPECT_EQ(next, 10);
}

TEST(BatchSource, EvaluationInputsAreTheDataSetsOwnBytes) {
  auto test = Numbered(10);
  const std::uint8_t* pixels = test->input(4);
  EncodedTensor inputs;
  {
    const BatchSource source(SmallOptions(), nullptr, std::move(test));
    inputs = source.EvaluationInputs(1);
  }
  // Nothing was copied, and the bytes live as long as the tensor.
  EXPECT_EQ(inputs.payload.data(), reinterpret_cast<const char*>(pixels));
  EXPECT_EQ(inputs.payload.data()[0], 4 * 24);
}

TEST(BatchSource, TextGoesOutAsBytesAndTheBytesThatFollow) {
  // 7 samples of 4 bytes, the last with 1 target.
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 26; ++i) bytes.push_back(static_cast<std::uint8_t>(i));
  const auto text = *TextDataset::Create(bytes, 4);
  ASSERT_EQ(text->size(), 7);
  BatchSource::Options options = SmallOptions();
  options.samples = 4;
  options.micro_batches = 2;
  const BatchSource source(options, text, text);
  EXPECT_EQ(source.steps_per_epoch(), 2);
  double weight = 0;
  for (int step = 1; step <= 2; ++step) {
    const StepBatch batch = source.Plan(step);
    weight += source.Weight(batch);
    for (int m = 0; m < 2; ++m) {
      const EncodedTensor inputs = source.Inputs(batch, m), targets = source.Targets(batch, m);
      const std::int64_t count = batch.micro_batch_sizes[m];
      EXPECT_EQ(inputs.dtype, WireDtype::kUint8);
      EXPECT_THAT(inputs.dims, ElementsAre(count, 4));
      EXPECT_EQ(targets.dtype, WireDtype::kInt16);
      EXPECT_EQ(targets.codec, WireCodec::kRaw);
      EXPECT_THAT(targets.dims, ElementsAre(count, 4));
      ASSERT_EQ(targets.payload.size(), static_cast<std::size_t>(count) * 8);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t sample = batch.indices[batch.Offset(m) + i];
        for (int t = 0; t < 4; ++t) {
          std::int16_t target = 0;
          std::memcpy(&target, targets.payload.data() + (i * 4 + t) * 2, 2);
          const std::int64_t at = sample * 4 + t;
          EXPECT_EQ(inputs.payload.data()[i * 4 + t], at < 26 ? at : 0);
          EXPECT_EQ(target, at + 1 < 26 ? at + 1 : -1);
        }
      }
    }
  }
  EXPECT_EQ(weight, 25);
  EXPECT_THAT(source.evaluation_sizes(), ElementsAre(4, 3));
  EXPECT_THAT(source.EvaluationInputs(1).dims, ElementsAre(3, 4));
  EXPECT_EQ(source.EvaluationInputs(1).payload.data()[0], 16);
  EXPECT_THAT(source.EvaluationTargets(1).dims, ElementsAre(3, 4));
}

TEST(BatchSource, AStepOfImagesWeighsItsSamples) {
  const BatchSource source(SmallOptions(), Numbered(21), nullptr);
  EXPECT_EQ(source.Weight(source.Plan(1)), 8);
  EXPECT_EQ(source.Weight(source.Plan(3)), 5);
}

TEST(BatchSource, WithoutATestSetNothingIsEvaluated) {
  EXPECT_TRUE(BatchSource(SmallOptions(), Numbered(3), nullptr).evaluation_sizes().empty());
}

}  // namespace
}  // namespace resbm::data
