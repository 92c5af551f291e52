// The layers of a decoder-only language model.
#ifndef RESBM_MODEL_LAYERS_TRANSFORMER_LAYERS_H_
#define RESBM_MODEL_LAYERS_TRANSFORMER_LAYERS_H_

#include <memory>

#include "model/blocks/layer.h"
#include "model/parameters/parameters.h"
#include "model/spec.h"

namespace resbm::model {

// `layer` is the one that has this kind; its parameters are added to the module that is open. The embedding and the
// head start normal with GPT-2's deviation 0.02: nearly uniform predictions. Throw c10::Error.
std::unique_ptr<Layer> MakeTokenEmbedding(const LayerSpec& layer, const TokenEmbedding& spec,
                                          ParameterList& parameters);
std::unique_ptr<Layer> MakeDecoderBlock(const LayerSpec& layer, const DecoderBlock& spec, ParameterList& parameters);
std::unique_ptr<Layer> MakeLanguageHead(const LanguageHead& spec, ParameterList& parameters);

}  // namespace resbm::model

#endif  // RESBM_MODEL_LAYERS_TRANSFORMER_LAYERS_H_
