// A run of layers between two boundaries: the decoder of the one before, the layers, the encoder of the one
// after. Autograd's graphs end at a segment's ends; what passes between segments, in a process or between two,
// passes through the wire's codec.
#ifndef RESBM_MODEL_SEGMENT_H_
#define RESBM_MODEL_SEGMENT_H_

#include <memory>
#include <optional>
#include <vector>

#include "model/boundary.h"
#include "model/layers.h"
#include "model/parameters.h"
#include "model/spec.h"
#include "model/torch_headers.h"

namespace resbm::model {

class Segment {
 public:
  // [N, what enters] -> [N, what leaves]: wire shapes, the first and last segment of the model apart.
  at::Tensor Forward(const at::Tensor& input) const;

  // The boundaries at its ends; absent at the ends of the model.
  std::optional<BoundarySpec> before;
  std::optional<BoundarySpec> after;

 private:
  friend std::vector<Segment> MakeSegments(const StageSpec& spec, ParameterList& parameters);
  std::unique_ptr<BoundaryHalf> decoder_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::unique_ptr<BoundaryHalf> encoder_;
};

// Of a validated spec. Adds the parameters in global order. Throws c10::Error.
std::vector<Segment> MakeSegments(const StageSpec& spec, ParameterList& parameters);

}  // namespace resbm::model

#endif  // RESBM_MODEL_SEGMENT_H_
