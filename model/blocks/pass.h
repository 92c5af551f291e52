// What a forward pass is for: what dropout and staged buffers need to know.
#ifndef RESBM_MODEL_BLOCKS_PASS_H_
#define RESBM_MODEL_BLOCKS_PASS_H_

#include <cstdint>
#include <vector>

#include "model/stage_model.h"
#include "model/torch/torch_headers.h"

namespace resbm::model {

// The tensors that cross a boundary together.
using Tensors = std::vector<at::Tensor>;

struct Pass {
  bool training = false;
  // The same once more, for a backward pass that needs what was not kept: buffers are left alone.
  bool again = false;
  std::uint64_t seed = 0;  // of the job
  // Of the micro-batch, in training; else null.
  const SampleIds* samples = nullptr;
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_BLOCKS_PASS_H_
