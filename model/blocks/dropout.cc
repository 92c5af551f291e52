#include "model/blocks/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/parameters/initialise.h"
#include "model/blocks/philox.h"

namespace resbm::model {
namespace {

constexpr std::int64_t kLow32 = 0xffffffff;

// Of 2^32 random words those below are dropped.
std::uint32_t ThresholdOf(double rate) {
  return static_cast<std::uint32_t>(std::min(std::round(rate * 4294967296.0), 4294967295.0));
}

float ScaleOf(double rate) { return static_cast<float>(1 / (1 - rate)); }

// The upper and lower half of a 64-bit product of numbers below 2^32. The product may wrap; its bits are right.
std::pair<at::Tensor, at::Tensor> Multiply(const at::Tensor& words, std::uint32_t multiplier) {
  const at::Tensor product = words.mul(static_cast<std::int64_t>(multiplier));
  return {at::bitwise_right_shift(product, 32).bitwise_and_(kLow32), product.bitwise_and(kLow32)};
}

}  // namespace

at::Tensor DropoutMaskByLoop(std::uint64_t key, const SampleIds& samples, std::int64_t size, double rate) {
  const auto count = static_cast<std::int64_t>(samples.indices.size());
  at::Tensor mask = at::empty({count, size}, at::TensorOptions().dtype(at::kFloat));
  float* const values = mask.mutable_data_ptr<float>();
  at::parallel_for(0, count, /*grain_size=*/1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const PhiloxStream stream{key, samples.epoch, samples.indices[static_cast<std::size_t>(i)]};
      FillDropoutMask(stream, ThresholdOf(rate), ScaleOf(rate), values + i * size, static_cast<std::size_t>(size));
    }
  });
  return mask;
}

at::Tensor DropoutMaskByTensors(std::uint64_t key, const SampleIds& samples, std::int64_t size, double rate,
                                c10::Device device) {
  c10::NoGradGuard no_grad;
  const auto count = static_cast<std::int64_t>(samples.indices.size());
  const std::int64_t blocks = (size + 3) / 4;
  std::vector<std::int64_t> low;
  std::vector<std::int64_t> high;
  for (const std::uint64_t index : samples.indices) {
    low.push_back(static_cast<std::int64_t>(index & kLow32));
    high.push_back(static_cast<std::int64_t>(index >> 32));
  }
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  std::array<at::Tensor, 4> words = {
      at::arange(blocks, options).view({1, -1}),
      at::full({1, 1}, static_cast<std::int64_t>(samples.epoch & kLow32), options),
      at::tensor(low, at::kLong).to(device).view({-1, 1}),
      at::tensor(high, at::kLong).to(device).view({-1, 1}),
  };
  std::uint32_t key0 = static_cast<std::uint32_t>(key);
  std::uint32_t key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    auto [high0, low0] = Multiply(words[0], kPhiloxMultiplier0);
    auto [high1, low1] = Multiply(words[2], kPhiloxMultiplier1);
    words = {high1.bitwise_xor(words[1]).bitwise_xor_(static_cast<std::int64_t>(key0)), low1,
             high0.bitwise_xor(words[3]).bitwise_xor_(static_cast<std::int64_t>(key1)), low0};
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  for (at::Tensor& word : words) word = word.expand({count, blocks});
  return at::cat({words[0], words[1], words[2], words[3]}, 1)
      .narrow(1, 0, size)
      .ge(static_cast<std::int64_t>(ThresholdOf(rate)))
      .to(at::kFloat)
      .mul_(ScaleOf(rate));
}

Dropout::Dropout(double rate, const Origin& origin, std::string site)
    : rate_(rate), origin_(origin), site_(std::move(site)) {}

at::Tensor Dropout::operator()(const at::Tensor& x, const Pass& pass) const {
  if (!pass.training || rate_ == 0) return x;
  const std::size_t given = pass.samples == nullptr ? 0 : pass.samples->indices.size();
  TORCH_CHECK_INDEX(static_cast<std::int64_t>(given) == x.size(0), "dropout needs the index of each of ", x.size(0),
                    " samples, ", given, " were given");
  const std::uint64_t key = SeedOf(pass.seed, origin_, absl::StrCat("dropout.", site_));
  const std::int64_t size = x.numel() / std::max<std::int64_t>(1, x.size(0));
  const at::Tensor mask = x.is_cpu() ? DropoutMaskByLoop(key, *pass.samples, size, rate_)
                                     : DropoutMaskByTensors(key, *pass.samples, size, rate_, x.device());
  return x.mul(mask.view(x.sizes()));
}

}  // namespace resbm::model
