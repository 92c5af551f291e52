// The tensors that the coordinator feeds to the pipeline's ends: images or bytes of text to the first stage, labels
// or next bytes to the last.
#ifndef RESBM_PROTO_DATA_BATCH_SOURCE_H_
#define RESBM_PROTO_DATA_BATCH_SOURCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "proto/data/dataset.h"
#include "proto/data/sampler.h"
#include "proto/base/encoded_tensor.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::data {

// Pure functions of the options and data sets; any thread.
class BatchSource {
 public:
  struct Options {
    std::uint64_t seed = 1;                     // of the job
    std::int64_t samples = 64;                  // of one step
    std::int64_t micro_batches = 4;             // M
    v1::Data::Augment augment;                  // of training images
    std::int64_t evaluation_micro_batch = 100;  // samples
  };

  // Either may be null when it is not asked for: `test` without evaluation, `train` in `eval`.
  BatchSource(Options options, std::shared_ptr<const Dataset> train, std::shared_ptr<const Dataset> test);

  // Whether there are steps: without, only the evaluation's methods may be called.
  bool has_training_data() const { return train_ != nullptr; }
  std::int64_t steps_per_epoch() const { return planner_.steps_per_epoch(); }
  // step: from 1.
  StepBatch Plan(std::int64_t step) const { return planner_.Plan(step); }

  // Of all samples of the step: what its sums are divided by.
  double Weight(const StepBatch& batch) const;

  // `batch` from Plan; 0 <= micro_batch < batch.micro_batch_sizes.size(). Codec kRaw, first dimension the samples,
  // the others and the dtype as the data set says.
  EncodedTensor Inputs(const StepBatch& batch, int micro_batch) const;
  EncodedTensor Targets(const StepBatch& batch, int micro_batch) const;

  // The test set in its order, in micro-batches of these sizes; not augmented. The inputs share the data set's bytes.
  const std::vector<std::int64_t>& evaluation_sizes() const { return evaluation_sizes_; }
  EncodedTensor EvaluationInputs(int micro_batch) const;
  EncodedTensor EvaluationTargets(int micro_batch) const;

 private:
  const Options options_;
  const std::shared_ptr<const Dataset> train_;
  const std::shared_ptr<const Dataset> test_;
  const BatchPlanner planner_;
  const std::vector<std::int64_t> evaluation_sizes_;
};

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_BATCH_SOURCE_H_
