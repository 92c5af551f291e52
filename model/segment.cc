#include "model/segment.h"

#include <utility>

namespace resbm::model {

at::Tensor Segment::Forward(const at::Tensor& input) const {
  at::Tensor x = input;
  if (decoder_ != nullptr) x = decoder_->Forward(x);
  for (const auto& layer : layers_) x = layer->Forward(x);
  if (encoder_ != nullptr) x = encoder_->Forward(x);
  return x;
}

std::vector<Segment> MakeSegments(const StageSpec& spec, ParameterList& parameters) {
  std::vector<Segment> segments(1);
  auto boundary = spec.boundaries.begin();
  if (!spec.is_first()) {
    segments.back().before = *boundary;
    segments.back().decoder_ = MakeDecoder(*boundary, parameters);
    ++boundary;
  }
  for (const LayerSpec& layer : spec.layers) {
    segments.back().layers_.push_back(MakeLayer(layer, parameters));
    if (boundary == spec.boundaries.end() || boundary->after_layer != layer.index) continue;
    segments.back().after = *boundary;
    segments.back().encoder_ = MakeEncoder(*boundary, parameters);
    if (layer.index != spec.layers.back().index) {
      Segment next;
      next.before = *boundary;
      next.decoder_ = MakeDecoder(*boundary, parameters);
      segments.push_back(std::move(next));
    }
    ++boundary;
  }
  return segments;
}

}  // namespace resbm::model
