// Dropout's masks: the published generator, one and the same on every path, different wherever they should be.
#include "model/blocks/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "model/blocks/philox.h"

namespace resbm::model {
namespace {

constexpr std::uint64_t kKey = 0x299f31d0a4093822;

// ATen's generator is the reference.
std::uint32_t ReferenceWord(const PhiloxStream& stream, std::uint64_t block, int word) {
  at::philox_engine engine(stream.key, stream.sample, 0);
  engine.incr_n(block | stream.epoch << 32);
  std::uint32_t value = 0;
  for (int i = 0; i <= word; ++i) value = engine();
  return value;
}

TEST(Philox, GivesThePublishedWords) {
  // Random123's known answer for philox4x32-10 with the digits of pi as counter and key.
  const PhiloxStream stream{kKey, 0x85a308d3, 0x0370734413198a2e};
  const std::uint32_t words[] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  for (int word = 0; word < 4; ++word) EXPECT_EQ(ReferenceWord(stream, 0x243f6a88, word), words[word]);
}

TEST(Philox, MasksCompareTheReferenceWordsWithTheThreshold) {
  const PhiloxStream stream{kKey, 7, 0x123456789abcdef0};
  for (const std::size_t count : {1u, 3u, 4u, 5u, 63u, 64u, 65u, 260u}) {
    const std::size_t blocks = (count + 3) / 4;
    for (const std::uint32_t threshold : {0x20000000u, 0x80000000u, 0xe0000000u}) {
      std::vector<float> mask(count + 1, -7);
      FillDropoutMask(stream, threshold, 1.5f, mask.data(), count);
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t word = ReferenceWord(stream, i % blocks, static_cast<int>(i / blocks));
        ASSERT_EQ(mask[i], word >= threshold ? 1.5f : 0) << i << " of " << count;
      }
      EXPECT_EQ(mask[count], -7) << "wrote beyond its end";
    }
  }
}

SampleIds SomeSamples() { return {5, {0, 1, 59999, std::uint64_t{1} << 40, ~std::uint64_t{0}}}; }

TEST(DropoutMask, IsTheSameByLoopAndByTensors) {
  for (const std::int64_t size : {1, 2, 3, 4, 5, 16, 67, 1000}) {
    for (const double rate : {0.1, 0.5, 0.9}) {
      const at::Tensor loop = DropoutMaskByLoop(kKey, SomeSamples(), size, rate);
      const at::Tensor tensors = DropoutMaskByTensors(kKey, SomeSamples(), size, rate, at::kCPU);
      ASSERT_EQ(loop.sizes(), at::IntArrayRef({5, size}));
      EXPECT_TRUE(loop.equal(tensors)) << size << " values, rate " << rate;
    }
  }
}

TEST(DropoutMask, DoesNotDependOnHowSamplesAreGroupedNorOnThreads) {
  const at::Tensor all = DropoutMaskByLoop(kKey, SomeSamples(), 100, 0.3);
  for (std::int64_t i = 0; i < 5; ++i) {
    const SampleIds one{5, {SomeSamples().indices[static_cast<std::size_t>(i)]}};
    EXPECT_TRUE(DropoutMaskByLoop(kKey, one, 100, 0.3)[0].equal(all[i])) << i;
  }
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  EXPECT_TRUE(DropoutMaskByLoop(kKey, SomeSamples(), 100, 0.3).equal(all));
  at::set_num_threads(threads);
}

TEST(DropoutMask, DropsTheShareThatItShouldAndKeepsTheMean) {
  SampleIds samples;
  for (std::uint64_t i = 0; i < 40; ++i) samples.indices.push_back(i);
  for (const double rate : {0.1, 0.5, 0.8}) {
    const at::Tensor mask = DropoutMaskByLoop(kKey, samples, 10000, rate);
    const double kept = mask.gt(0).to(at::kDouble).mean().item<double>();
    const double deviation = std::sqrt(rate * (1 - rate) / 400000);
    EXPECT_NEAR(kept, 1 - rate, 5 * deviation);
    EXPECT_NEAR(mask.to(at::kDouble).mean().item<double>(), 1, 5 * deviation / (1 - rate));
    EXPECT_EQ(mask.max().item<float>(), static_cast<float>(1 / (1 - rate)));
  }
}

// How often two masks of rate 1/2 agree: half of the time, if they have nothing to do with each other.
double Agreement(const at::Tensor& a, const at::Tensor& b) { return a.eq(b).to(at::kDouble).mean().item<double>(); }

class DropoutModule : public testing::Test {
 protected:
  at::Tensor Mask(const Dropout& dropout, const Pass& pass) const { return dropout(at::ones({2, 100, 100}), pass); }

  const SampleIds samples_{3, {17, 18}};
  const Pass pass_{.training = true, .seed = 9, .samples = &samples_};
  const Origin layer_{.boundary = false, .layer = 2};
};

TEST_F(DropoutModule, DiffersByLayerSiteSeedEpochAndSample) {
  const at::Tensor mask = Mask(Dropout(0.5, layer_, "mlp"), pass_);
  EXPECT_TRUE(mask.equal(Mask(Dropout(0.5, layer_, "mlp"), pass_)));
  Pass other_seed = pass_;
  other_seed.seed = 10;
  SampleIds next_epoch = samples_;
  ++next_epoch.epoch;
  Pass other_epoch = pass_;
  other_epoch.samples = &next_epoch;
  const at::Tensor others[] = {
      Mask(Dropout(0.5, layer_, "attention"), pass_),
      Mask(Dropout(0.5, {.boundary = false, .layer = 3}, "mlp"), pass_),
      Mask(Dropout(0.5, {.boundary = true, .layer = 2}, "mlp"), pass_),
      Mask(Dropout(0.5, layer_, "mlp"), other_seed),
      Mask(Dropout(0.5, layer_, "mlp"), other_epoch),
      mask.flip({0}),
  };
  for (const at::Tensor& other : others) EXPECT_NEAR(Agreement(mask, other), 0.5, 0.02);
}

TEST_F(DropoutModule, IsTheSameWhenAPassIsRunAgain) {
  Pass again = pass_;
  again.again = true;
  const Dropout dropout(0.5, layer_, "mlp");
  EXPECT_TRUE(Mask(dropout, again).equal(Mask(dropout, pass_)));
}

TEST_F(DropoutModule, LeavesEvaluationAndRateZeroAlone) {
  const at::Tensor x = at::ones({2, 3});
  EXPECT_TRUE(Dropout(0.5, layer_, "mlp")(x, Pass()).is_same(x));
  EXPECT_TRUE(Dropout(0, layer_, "mlp")(x, Pass{.training = true}).is_same(x));
}

TEST_F(DropoutModule, GradientsPassWhereValuesDid) {
  at::Tensor x = at::ones({2, 50});
  x.requires_grad_(true);
  const at::Tensor y = Dropout(0.5, layer_, "mlp")(x, pass_);
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(y.detach()));
}

TEST_F(DropoutModule, RefusesAMicroBatchWhoseSamplesItDoesNotKnow) {
  const Dropout dropout(0.5, layer_, "mlp");
  EXPECT_THROW(dropout(at::ones({3, 4}), pass_), c10::IndexError);
  EXPECT_THROW(dropout(at::ones({3, 4}), Pass{.training = true}), c10::IndexError);
}

}  // namespace
}  // namespace resbm::model
