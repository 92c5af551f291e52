// A run of layers between two boundaries: the decoder of the one before, the layers, the encoder of the one
// after. Autograd's graphs end at a segment's ends; what passes between segments, in a process or between two,
// passes through the wire's codec.
//
// Inside, the graph is broken again into pieces, joined by detached leaves: around the decoder and the encoder, so
// that gradients at both sides of a cut can be looked at, and around each layer that is computed again for the
// backward pass instead of being kept. Breaking a graph changes no bit of any gradient.
#ifndef RESBM_MODEL_SEGMENT_H_
#define RESBM_MODEL_SEGMENT_H_

#include <memory>
#include <optional>
#include <vector>

#include "model/boundaries/boundary.h"
#include "model/layers/layers.h"
#include "model/parameters/parameters.h"
#include "model/blocks/pass.h"
#include "model/spec.h"
#include "model/torch/torch_headers.h"

namespace resbm::model {

// What the backward pass of one micro-batch needs of one segment.
struct SegmentGraph {
  struct Piece {
    Tensors input;   // leaves
    Tensors output;  // empty where it is computed again
  };
  Tensors input;              // leaves; of floating point, they require a gradient unless they are the model's input
  std::vector<Piece> pieces;  // empty where the whole segment is computed again
};

// Root mean squares of the gradients that pass the ends of a segment; 0 where it has no such end.
struct SegmentSignals {
  double after_decoder = 0;
  double before_encoder = 0;
};

class Segment {
 public:
  // input: what crosses `before`, or the model's input. Gives what crosses `after`, or the logits. Into the
  // graph goes what Backward needs; without one nothing is kept. Throws c10::Error.
  Tensors Forward(const Tensors& input, const Pass& pass, SegmentGraph* graph) const;

  // `gradients`: of what Forward gave, one for each tensor of floating point, in their order. Gives those of the
  // input, zeros where nothing flowed back; nothing of the model's input. Adds to the parameters' gradients and
  // frees the graph piece by piece. `pass` is Forward's. Throws c10::Error.
  Tensors Backward(SegmentGraph graph, Tensors gradients, Pass pass, SegmentSignals* signals) const;

  // The boundaries at its ends; absent at the ends of the model.
  std::optional<BoundarySpec> before;
  std::optional<BoundarySpec> after;

 private:
  friend std::vector<Segment> MakeSegments(const StageSpec& spec, ParameterList& parameters);

  // A part of the segment whose graph is its own.
  struct Piece {
    bool decoder = false;
    bool encoder = false;
    std::size_t first_layer = 0;
    std::size_t end_layer = 0;
    bool recompute = false;
  };

  void CutIntoPieces(const std::vector<bool>& recompute_layer);
  Tensors Run(const Piece& piece, const Tensors& input, const Pass& pass) const;
  Tensors Record(const Tensors& input, const Pass& pass, SegmentGraph* graph) const;

  Precision precision_ = Precision::kFp32;
  std::unique_ptr<BoundaryDecoder> decoder_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::unique_ptr<BoundaryEncoder> encoder_;
  std::vector<Piece> pieces_;
  bool recompute_ = false;
};

// Of a validated spec. Adds the parameters in global order. Throws c10::Error.
std::vector<Segment> MakeSegments(const StageSpec& spec, ParameterList& parameters);

}  // namespace resbm::model

#endif  // RESBM_MODEL_SEGMENT_H_
