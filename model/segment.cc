#include "model/segment.h"

#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "model/torch/precision.h"
#include "model/signals.h"

namespace resbm::model {
namespace {

Tensors Leaves(const Tensors& tensors) {
  Tensors leaves;
  for (const at::Tensor& tensor : tensors) {
    at::Tensor leaf = tensor.detach();
    if (leaf.is_floating_point()) leaf.requires_grad_(true);
    leaves.push_back(std::move(leaf));
  }
  return leaves;
}

// In both, one gradient for each tensor of floating point.
void RunBackward(const Tensors& outputs, const Tensors& gradients) {
  torch::autograd::variable_list roots, of_roots;
  std::size_t next = 0;
  for (const at::Tensor& output : outputs) {
    if (!output.is_floating_point()) continue;
    const at::Tensor& gradient = gradients[next++];
    if (!output.requires_grad()) continue;
    roots.push_back(output);
    of_roots.push_back(gradient.defined() ? gradient.to(output.scalar_type()) : gradient);
  }
  if (!roots.empty()) torch::autograd::backward(roots, of_roots);
}

Tensors GradientsOf(const Tensors& leaves) {
  Tensors gradients;
  for (const at::Tensor& leaf : leaves) {
    if (!leaf.is_floating_point() || !leaf.requires_grad()) continue;
    // A branch that this micro-batch did not use.
    gradients.push_back(leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf));
  }
  return gradients;
}

}  // namespace

Tensors Segment::Run(const Piece& piece, const Tensors& input, const Pass& pass) const {
  const PrecisionScope precision(precision_, input[0].device().type());
  at::Tensor x = piece.decoder ? decoder_->Forward(input, pass) : input[0];
  for (std::size_t i = piece.first_layer; i < piece.end_layer; ++i) x = layers_[i]->Forward(x, pass);
  if (piece.encoder) return encoder_->Forward(x, pass);
  return {x};
}

Tensors Segment::Record(const Tensors& input, const Pass& pass, SegmentGraph* graph) const {
  Tensors x = input;
  for (const Piece& piece : pieces_) {
    SegmentGraph::Piece part;
    part.input = &piece == &pieces_.front() ? x : Leaves(x);
    const at::AutoGradMode keep(!piece.recompute);
    x = Run(piece, part.input, pass);
    if (!piece.recompute) part.output = x;
    graph->pieces.push_back(std::move(part));
  }
  return x;
}

Tensors Segment::Forward(const Tensors& input, const Pass& pass, SegmentGraph* graph) const {
  if (graph != nullptr) {
    // The model's input needs no gradient.
    graph->input = before.has_value() ? Leaves(input) : input;
    if (!recompute_) return Record(graph->input, pass, graph);
  }
  const c10::NoGradGuard no_grad;
  Tensors x = input;
  for (const Piece& piece : pieces_) x = Run(piece, x, pass);
  return x;
}

Tensors Segment::Backward(SegmentGraph graph, Tensors gradients, Pass pass, SegmentSignals* signals) const {
  const at::AutoGradMode record(true);
  pass.again = true;
  if (recompute_) Record(graph.input, pass, &graph);
  for (std::size_t i = pieces_.size(); i-- > 0;) {
    // Taken out of the graph, so that each piece's memory is free before the next needs more.
    SegmentGraph::Piece part = std::move(graph.pieces[i]);
    graph.pieces.pop_back();
    if (part.output.empty()) part.output = Run(pieces_[i], part.input, pass);
    RunBackward(part.output, gradients);
    part.output.clear();
    gradients = GradientsOf(part.input);
    if (signals != nullptr && !gradients.empty()) {
      if (pieces_[i].encoder) signals->before_encoder = RootMeanSquare(gradients[0]);
      if (i > 0 && pieces_[i - 1].decoder) signals->after_decoder = RootMeanSquare(gradients[0]);
    }
  }
  return gradients;
}

void Segment::CutIntoPieces(const std::vector<bool>& recompute_layer) {
  if (decoder_ != nullptr) pieces_.push_back({.decoder = true});
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const bool joins = !recompute_layer[i] && i > 0 && !recompute_layer[i - 1];
    if (joins) {
      pieces_.back().end_layer = i + 1;
    } else {
      pieces_.push_back({.first_layer = i, .end_layer = i + 1, .recompute = recompute_layer[i]});
    }
  }
  if (encoder_ != nullptr) pieces_.push_back({.encoder = true});
}

std::vector<Segment> MakeSegments(const StageSpec& spec, ParameterList& parameters) {
  std::vector<Segment> segments;
  std::vector<bool> recompute_layer;
  const auto open = [&](const BoundarySpec* before) {
    segments.emplace_back();
    segments.back().precision_ = spec.precision;
    recompute_layer.clear();
    if (before == nullptr) return;
    segments.back().before = *before;
    segments.back().decoder_ = MakeDecoder(*before, parameters);
    segments.back().recompute_ = before->recompute;
  };
  auto boundary = spec.boundaries.begin();
  open(spec.is_first() ? nullptr : &*boundary++);
  for (const LayerSpec& layer : spec.layers) {
    segments.back().layers_.push_back(MakeLayer(layer, parameters));
    recompute_layer.push_back(layer.recompute);
    if (boundary == spec.boundaries.end() || boundary->after_layer != layer.index) continue;
    segments.back().after = *boundary;
    segments.back().encoder_ = MakeEncoder(*boundary, parameters);
    segments.back().CutIntoPieces(recompute_layer);
    if (layer.index != spec.layers.back().index) open(&*boundary);
    ++boundary;
  }
  if (segments.back().pieces_.empty()) segments.back().CutIntoPieces(recompute_layer);
  return segments;
}

}  // namespace resbm::model
