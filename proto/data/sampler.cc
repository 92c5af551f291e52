#include "proto/data/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "proto/data/counter_random.h"

namespace resbm::data {

std::int64_t StepBatch::Offset(int micro_batch) const {
  return std::accumulate(micro_batch_sizes.begin(), micro_batch_sizes.begin() + micro_batch, std::int64_t{0});
}

std::vector<std::int64_t> SplitSizes(std::int64_t samples, std::int64_t parts) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < std::min(samples, parts); ++i) {
    sizes.push_back(samples / parts + (i < samples % parts ? 1 : 0));
  }
  return sizes;
}

std::vector<std::int64_t> ChunkSizes(std::int64_t samples, std::int64_t part) {
  part = std::max<std::int64_t>(part, 1);
  std::vector<std::int64_t> sizes;
  for (; samples > 0; samples -= part) sizes.push_back(std::min(samples, part));
  return sizes;
}

std::vector<std::int64_t> Permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t size) {
  std::vector<std::int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  const CounterRandom random = CounterRandom(seed).Stream(kShufflePurpose).Stream(epoch);
  for (std::int64_t i = size - 1; i > 0; --i) std::swap(order[i], order[random.Below(i + 1, i)]);
  return order;
}

BatchPlanner::BatchPlanner(std::uint64_t seed, std::int64_t dataset_size, std::int64_t samples,
                           std::int64_t micro_batches)
    : seed_(seed),
      dataset_size_(std::max<std::int64_t>(dataset_size, 1)),
      samples_(std::max<std::int64_t>(samples, 1)),
      micro_batches_(std::max<std::int64_t>(micro_batches, 1)),
      steps_per_epoch_((dataset_size_ - 1) / samples_ + 1) {}

StepBatch BatchPlanner::Plan(std::int64_t step) const {
  StepBatch batch;
  batch.step = step;
  batch.epoch = EpochOf(step);
  const auto order = PermutationOf(batch.epoch);
  const std::int64_t begin = (step - 1) % steps_per_epoch_ * samples_;
  const std::int64_t end = begin + std::min(samples_, dataset_size_ - begin);
  batch.indices.assign(order->begin() + begin, order->begin() + end);
  batch.micro_batch_sizes = SplitSizes(end - begin, micro_batches_);
  return batch;
}

std::shared_ptr<const std::vector<std::int64_t>> BatchPlanner::PermutationOf(std::int64_t epoch) const {
  MutexLock lock(mutex_);
  if (cached_epoch_ != epoch) {
    cached_ = std::make_shared<const std::vector<std::int64_t>>(Permutation(seed_, epoch, dataset_size_));
    cached_epoch_ = epoch;
  }
  return cached_;
}

}  // namespace resbm::data
