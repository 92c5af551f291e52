// Which samples make up a step: a pure function of the step, so that a replay gives the same ones.
#ifndef RESBM_PROTO_DATA_SAMPLER_H_
#define RESBM_PROTO_DATA_SAMPLER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "proto/base/mutex.h"

namespace resbm::data {

struct StepBatch {
  std::int64_t step = 0;   // from 1
  std::int64_t epoch = 0;  // from 0
  // Into the data set, in the order of the micro-batches.
  std::vector<std::int64_t> indices;
  // Samples of each micro-batch, all above 0; they add up to indices.size().
  std::vector<std::int64_t> micro_batch_sizes;

  // Where micro-batch m begins in `indices`.
  std::int64_t Offset(int micro_batch) const;
};

// As torch.tensor_split(samples, parts): the first samples % parts are one larger. Fewer samples than
// parts: that many parts of 1 (empty micro-batches are left out).
std::vector<std::int64_t> SplitSizes(std::int64_t samples, std::int64_t parts);

// Parts of `part` samples, the last one smaller.
std::vector<std::int64_t> ChunkSizes(std::int64_t samples, std::int64_t part);

// 0 .. size-1 in an order that depends on (seed, epoch) only: Fisher-Yates from the end, with the
// CounterRandom of that stream.
std::vector<std::int64_t> Permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t size);

// Epochs of ceil(dataset_size / samples) steps, each sample once an epoch; the last, smaller batch is kept.
// Any thread.
class BatchPlanner {
 public:
  // samples: of one step; micro_batches: M. Values below 1 count as 1.
  BatchPlanner(std::uint64_t seed, std::int64_t dataset_size, std::int64_t samples, std::int64_t micro_batches);

  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  // step: from 1.
  std::int64_t EpochOf(std::int64_t step) const { return (step - 1) / steps_per_epoch_; }
  StepBatch Plan(std::int64_t step) const;

 private:
  std::shared_ptr<const std::vector<std::int64_t>> PermutationOf(std::int64_t epoch) const;

  const std::uint64_t seed_;
  const std::int64_t dataset_size_;
  const std::int64_t samples_;
  const std::int64_t micro_batches_;
  const std::int64_t steps_per_epoch_;

  // The last epoch asked for.
  mutable Mutex mutex_;
  mutable std::int64_t cached_epoch_ RESBM_GUARDED_BY(mutex_) = -1;
  mutable std::shared_ptr<const std::vector<std::int64_t>> cached_ RESBM_GUARDED_BY(mutex_);
};

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_SAMPLER_H_
