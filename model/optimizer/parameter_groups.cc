#include "model/optimizer/parameter_groups.h"

#include <fnmatch.h>

#include <variant>

namespace resbm::model {

bool MuonTakes(const StageSpec& spec, const Parameter& parameter) {
  if (parameter.tensor.dim() < 2 || parameter.orthonormal) return false;
  if (parameter.origin.boundary) return true;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.index != parameter.origin.layer) continue;
    const bool head = spec.is_last() && layer.index == spec.layers.back().index;
    return !head && !std::holds_alternative<ConvStem>(layer.kind) &&
           !std::holds_alternative<TokenEmbedding>(layer.kind);
  }
  return false;
}

OptimizedParameter InGroup(const StageSpec& spec, const Parameter& parameter) {
  OptimizedParameter optimized{.tensor = parameter.tensor, .muon = MuonTakes(spec, parameter)};
  for (const ParameterGroup& group : spec.parameter_groups) {
    if (fnmatch(group.pattern.c_str(), parameter.name.c_str(), 0) != 0) continue;
    optimized.rate_ratio = group.rate_ratio;
    optimized.weight_decay = group.weight_decay;
    break;
  }
  return optimized;
}

}  // namespace resbm::model
