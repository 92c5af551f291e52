// The layer kinds of spec.h as modules. proto/resbm/v1/layer.proto gives their structure and names.
#ifndef RESBM_MODEL_LAYERS_H_
#define RESBM_MODEL_LAYERS_H_

#include <memory>

#include "model/parameters.h"
#include "model/spec.h"
#include "model/torch_headers.h"

namespace resbm::model {

class Layer {
 public:
  virtual ~Layer() = default;
  // [N, input_shape...] -> [N, output_shape...]. Leaves x as it is; the result may share its memory.
  virtual at::Tensor Forward(const at::Tensor& x) const = 0;
};

// Adds the layer's parameters under spec.name. The spec has been validated. Throws c10::Error.
std::unique_ptr<Layer> MakeLayer(const LayerSpec& spec, ParameterList& parameters);

}  // namespace resbm::model

#endif  // RESBM_MODEL_LAYERS_H_
