// The boundaries of transformers, on [N, T, width] with b = crossing_channels. Nothing here has a bias.
//
// kInBranch: the boundary stands inside the residual branches of the blocks around it. The block before ends with its
// attention, the block after begins with its MLP; norm2 and norm1 are of this boundary:
//   z  = T h1 + dropout(mlp.down(silu(mlp.gate(n)) * mlp.up(n)))     n = norm2(h1); gate, up [hidden, width],
//                                                                    down [b, hidden]
//   h1 = T' z + dropout(attention.out(attention of norm1(relu(decompressor(z)))))
//                                                                    decompressor [width, b], attention.qkv
//                                                                    [3 width, width], attention.out [width, width]
// kAdapter: the boundary is a module between whole blocks:
//   z  = T h + compressor(norm_in(h))                                compressor [b, width]
//   h' = T' z + expander(silu(low_dim(norm1(z))))                    norm1 over b, low_dim [wide, b],
//                                                                    expander [width, wide], wide the larger
//                                                                    of 4 b and width
// kLinear on sequences:
//   z = compressor(h), h' = expander(z)                              compressor [b, width], expander [width, b]
//
// T, and T' back:
//   kTruncate    the first b coordinates; T' pads with zeros. No parameters.
//   kOrthogonal  a random matrix of orthonormal rows and its transpose, which never change: buffers
//                shortcut_down.weight [b, width] and shortcut_up.weight [width, b]. Both ends draw the same, so nothing
//                is tied across stages.
//   kLearned     the same two as parameters: they start alike and then each end trains its own, its rows (the columns
//                of T') made orthonormal again after every step (model/parameters/orthonormal.h).
//
// Starts, times init_gain: matrices of kInBranch and kAdapter as those of decoder blocks (model/blocks/decoder_block.h), those
// whose result is added to T h or T' z as the blocks' outputs; of kLinear, Kaiming of the spec's mode with gain 1, or
// tied-orthogonal.
#ifndef RESBM_MODEL_BOUNDARIES_SEQUENCE_BOUNDARY_H_
#define RESBM_MODEL_BOUNDARIES_SEQUENCE_BOUNDARY_H_

#include <memory>

#include "model/blocks/boundary_half.h"
#include "model/parameters/parameters.h"
#include "model/spec.h"

namespace resbm::model {

// Of a validated spec of kInBranch or kAdapter, or of kLinear on a sequence. Throw c10::Error.
std::unique_ptr<BoundaryEncoder> MakeSequenceEncoder(const BoundarySpec& spec, ParameterList& parameters);
std::unique_ptr<BoundaryDecoder> MakeSequenceDecoder(const BoundarySpec& spec, ParameterList& parameters);

}  // namespace resbm::model

#endif  // RESBM_MODEL_BOUNDARIES_SEQUENCE_BOUNDARY_H_
