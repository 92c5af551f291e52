// The two halves of a boundary. Encoder and decoder are modules of their own because they may live in
// different processes.
#ifndef RESBM_MODEL_BOUNDARY_H_
#define RESBM_MODEL_BOUNDARY_H_

#include <memory>

#include "model/parameters.h"
#include "model/spec.h"
#include "model/torch_headers.h"

namespace resbm::model {

class BoundaryHalf {
 public:
  virtual ~BoundaryHalf() = default;
  // Encoder: [N, input_shape...] -> [N, wire_shape...]. Decoder: [N, wire_shape...] -> [N, output_shape...].
  virtual at::Tensor Forward(const at::Tensor& x) const = 0;
};

// kResbm: `compressor`, a 1x1 convolution C -> C/r that gives z. kIdentity: nothing.
std::unique_ptr<BoundaryHalf> MakeEncoder(const BoundarySpec& spec, ParameterList& parameters);

// kResbm, the residual bottleneck's second half with the shortcut rebuilt from z:
//   h = low_dim_conv1(SiLU(norm1(z)))
//   h = low_dim_conv2(SiLU(norm2(h)))          3x3, C/r channels
//   out = expander(h) + shortcut_recon(z)      1x1, C/r -> C_out
// All convolutions have biases. kIdentity: nothing.
std::unique_ptr<BoundaryHalf> MakeDecoder(const BoundarySpec& spec, ParameterList& parameters);

}  // namespace resbm::model

#endif  // RESBM_MODEL_BOUNDARY_H_
