// The two halves of a boundary, which may live in different processes.
#ifndef RESBM_MODEL_BLOCKS_BOUNDARY_HALF_H_
#define RESBM_MODEL_BLOCKS_BOUNDARY_HALF_H_

#include "model/blocks/pass.h"
#include "model/torch/torch_headers.h"

namespace resbm::model {

class BoundaryEncoder {
 public:
  virtual ~BoundaryEncoder() = default;
  // [N, input_shape...] -> one tensor [N, shape...] for each of the spec's `wire`, in their order.
  virtual Tensors Forward(const at::Tensor& x, const Pass& pass) const = 0;
};

class BoundaryDecoder {
 public:
  virtual ~BoundaryDecoder() = default;
  // What the encoder gives -> [N, output_shape...].
  virtual at::Tensor Forward(const Tensors& crossed, const Pass& pass) const = 0;
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_BLOCKS_BOUNDARY_HALF_H_
