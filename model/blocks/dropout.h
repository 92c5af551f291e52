// Dropout (Srivastava et al. 2014), scaled in training: values are zero with probability `rate`, the others are
// multiplied by 1 / (1 - rate).
//
// A mask is a function of the job's seed, the epoch, the sample's index in the data set, the place in the model and the
// value's place in the sample, and of nothing else: it is the same at every number of stages, micro-batches and
// threads, on a CPU and a GPU, and when a forward pass is run again.
#ifndef RESBM_MODEL_BLOCKS_DROPOUT_H_
#define RESBM_MODEL_BLOCKS_DROPOUT_H_

#include <cstdint>
#include <string>

#include "model/parameters/parameters.h"
#include "model/blocks/pass.h"
#include "model/torch/torch_headers.h"

namespace resbm::model {

class Dropout {
 public:
  // `site`: the place within the layer or boundary that `origin` names. rate: from 0 to below 1.
  Dropout(double rate, const Origin& origin, std::string site);

  // x, [N, ...], times the mask; x itself if the pass is no training or the rate is 0. The product of a reduced
  // precision is fp32. Throws c10::Error; c10::IndexError: the pass has not one sample index for each of N.
  at::Tensor operator()(const at::Tensor& x, const Pass& pass) const;

 private:
  const double rate_;
  const Origin origin_;
  const std::string site_;
};

// [samples, size] fp32, scaled. Both give the same bits: the first by a loop over host memory, the second by tensor
// operations on any device.
at::Tensor DropoutMaskByLoop(std::uint64_t key, const SampleIds& samples, std::int64_t size, double rate);
at::Tensor DropoutMaskByTensors(std::uint64_t key, const SampleIds& samples, std::int64_t size, double rate,
                                c10::Device device);

}  // namespace resbm::model

#endif  // RESBM_MODEL_BLOCKS_DROPOUT_H_
