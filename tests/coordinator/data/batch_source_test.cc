#include "coordinator/data/batch_source.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/data/augment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;

constexpr ImageSize kSize{2, 3, 4};

// Image i: bytes 24 i, 24 i + 1, ...; label i % 10.
std::shared_ptr<const Dataset> Numbered(int count) {
  std::vector<std::uint8_t> pixels(count * kSize.bytes()), labels(count);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i);
  for (int i = 0; i < count; ++i) labels[i] = static_cast<std::uint8_t>(i % 10);
  return std::make_shared<const Dataset>(*Dataset::Create(kSize, 10, std::move(pixels), std::move(labels)));
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
  return std::string(reinterpret_cast<const char*>(dataset.image(index)), dataset.image_size().bytes());
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
  Augment(DrawAugmentation(options.augment, 5, 1, batch.indices[0]), kSize, train->image(batch.indices[0]),
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

TEST(BatchSource, WithoutATestSetNothingIsEvaluated) {
  EXPECT_TRUE(BatchSource(SmallOptions(), Numbered(3), nullptr).evaluation_sizes().empty());
}

}  // namespace
}  // namespace resbm::coordinator
