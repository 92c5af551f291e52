// One layer of a stage.
#ifndef RESBM_MODEL_BLOCKS_LAYER_H_
#define RESBM_MODEL_BLOCKS_LAYER_H_

#include "model/blocks/pass.h"
#include "model/torch/torch_headers.h"

namespace resbm::model {

class Layer {
 public:
  virtual ~Layer() = default;
  // [N, input_shape...] -> [N, output_shape...]. Leaves x as it is; the result may share its memory.
  virtual at::Tensor Forward(const at::Tensor& x, const Pass& pass) const = 0;
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_BLOCKS_LAYER_H_
