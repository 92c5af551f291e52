// The top-k baseline: of each sample the values that are largest in magnitude cross, with their places; of a sequence
// [T, width] as many of each position, because if positions competed, a later token would change what an earlier one
// sends. Compression as in Aji and Heafield 2017 ("Sparse Communication for Distributed Gradient Descent"), of
// activations; the gradient returns for the same places only.
#ifndef RESBM_MODEL_BOUNDARIES_TOP_K_H_
#define RESBM_MODEL_BOUNDARIES_TOP_K_H_

#include "model/blocks/boundary_half.h"
#include "model/spec.h"

namespace resbm::model {

class TopKEncoder : public BoundaryEncoder {
 public:
  explicit TopKEncoder(const BoundarySpec& spec);
  // {values [N, kept] fp32, indices [N, kept] of the spec's dtype}: places in the flattened sample, ascending.
  Tensors Forward(const at::Tensor& x, const Pass& pass) const override;

 private:
  const std::int64_t kept_;
  const std::int64_t positions_;  // 1 of anything but a sequence
  const at::ScalarType index_type_;
};

class TopKDecoder : public BoundaryDecoder {
 public:
  explicit TopKDecoder(const BoundarySpec& spec) : shape_(spec.output_shape) {}
  // Throws c10::IndexError: an index is outside the sample.
  at::Tensor Forward(const Tensors& crossed, const Pass& pass) const override;

 private:
  const std::vector<std::int64_t> shape_;
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_BOUNDARIES_TOP_K_H_
