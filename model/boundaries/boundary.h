// The two halves of a boundary. Encoder and decoder are modules of their own because they may live in
// different processes.
//
// One tensor crosses, but for kTopK; all parameters of a boundary carry the prefix of its cut point, whichever
// half they are in.
//
// kResbm, the residual bottleneck (1x1 convolutions but for the low-dimensional path, all with biases):
//   z = compressor(x)                               C -> C/r, with the boundary's stride
//   out = expander(low_dim(z)) + shortcut           C/r -> C_out; low_dim as model/blocks/low_dim.h says
//   shortcut: kReconstruct (scheme B)  shortcut_recon(z)
//             kTransmit (scheme A)     shortcut_recon(s), s = shortcut_conv(x), C -> C/r, with the stride; z and s
//                                      cross as one tensor of 2 C/r channels, z first
//             kNone                    0
// kLinear:         z = compressor(x), out = expander(z)
// kBottleneck:     z = ReLU(norm1(conv1(x))) 1x1; out = ReLU(norm3(conv3(ReLU(norm2(conv2(z)))))) 3x3, 1x1; no biases
// kIdentity:       x crosses; no parameters
// kTopK:           values = the `kept` values of a sample that are largest in magnitude (of a sequence, as many at each
//                  position), indices = where in it they stand (ascending by index); out = zeros but for them; no
//                  parameters
// kIdentityBlock:  x crosses; out = x + what kResbm would give of it, every parameter in the decoder
//
// Starts: Kaiming of the spec's mode, its gain times init_gain; kTiedOrthogonal gives compressor and shortcut_conv
// one matrix of orthonormal rows, expander and shortcut_recon its transpose, and the rest fan_out.
#ifndef RESBM_MODEL_BOUNDARIES_BOUNDARY_H_
#define RESBM_MODEL_BOUNDARIES_BOUNDARY_H_

#include <memory>

#include "model/blocks/boundary_half.h"
#include "model/parameters/parameters.h"
#include "model/spec.h"

namespace resbm::model {

// Of a validated spec. Throw c10::Error.
std::unique_ptr<BoundaryEncoder> MakeEncoder(const BoundarySpec& spec, ParameterList& parameters);
std::unique_ptr<BoundaryDecoder> MakeDecoder(const BoundarySpec& spec, ParameterList& parameters);

}  // namespace resbm::model

#endif  // RESBM_MODEL_BOUNDARIES_BOUNDARY_H_
