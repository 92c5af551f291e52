// The layer kinds of spec.h as modules. proto/resbm/v1/layer.proto gives their structure and names.
#ifndef RESBM_MODEL_LAYERS_LAYERS_H_
#define RESBM_MODEL_LAYERS_LAYERS_H_

#include <memory>

#include "model/blocks/layer.h"
#include "model/parameters/parameters.h"
#include "model/spec.h"

namespace resbm::model {

// Adds the layer's parameters under spec.name. The spec has been validated. Throws c10::Error.
std::unique_ptr<Layer> MakeLayer(const LayerSpec& spec, ParameterList& parameters);

}  // namespace resbm::model

#endif  // RESBM_MODEL_LAYERS_LAYERS_H_
