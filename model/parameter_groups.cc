#include "model/parameter_groups.h"

#include <variant>

namespace resbm::model {

bool MuonTakes(const StageSpec& spec, const Parameter& parameter) {
  if (parameter.tensor.dim() < 2) return false;
  if (parameter.origin.boundary) return true;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.index != parameter.origin.layer) continue;
    const bool head = spec.is_last() && layer.index == spec.layers.back().index;
    return !head && !std::holds_alternative<ConvStem>(layer.kind);
  }
  return false;
}

}  // namespace resbm::model
