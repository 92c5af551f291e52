// Checks of a decoder block's numbers, which a layer and a boundary share. A part of validate.
#ifndef RESBM_MODEL_VALIDATE_DECODER_BLOCK_CHECK_H_
#define RESBM_MODEL_VALIDATE_DECODER_BLOCK_CHECK_H_

#include "absl/status/status.h"
#include "model/spec.h"

namespace resbm::model {

// INVALID_ARGUMENT names the field.
absl::Status CheckDecoderBlock(const DecoderBlock& block);
absl::Status CheckDropout(double rate);
absl::Status CheckNormEpsilon(double epsilon);

// How the halves of blocks around a boundary must lie: where it is kInBranch, the layer before has given its MLP to the
// boundary and the layer after its attention, with the numbers of the boundary's decoder_block; elsewhere neither has.
// Null: no such layer or boundary in this stage. INVALID_ARGUMENT names the layer.
absl::Status CheckMlpPlace(const LayerSpec& layer, const BoundarySpec* after);
absl::Status CheckAttentionPlace(const BoundarySpec* before, const LayerSpec& layer);

}  // namespace resbm::model

#endif  // RESBM_MODEL_VALIDATE_DECODER_BLOCK_CHECK_H_
