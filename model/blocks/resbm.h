// The residual bottleneck: as the two halves of a boundary, whose comments (model/boundaries/boundary.h) say what it
// computes, and as an ordinary layer.
#ifndef RESBM_MODEL_BLOCKS_RESBM_H_
#define RESBM_MODEL_BLOCKS_RESBM_H_

#include <memory>
#include <optional>
#include <string>

#include "model/blocks/boundary_half.h"
#include "model/blocks/layer.h"
#include "model/blocks/low_dim.h"
#include "model/blocks/operators.h"
#include "model/parameters/parameters.h"
#include "model/spec.h"

namespace resbm::model {

// How the spec's init starts a convolution.
KaimingStart KaimingOf(const BoundarySpec& spec);
// 1x1, in_channels -> low with the spec's stride, and low -> out_channels; both with a bias.
Convolution CompressorOf(const BoundarySpec& spec, const std::string& name, int low, ParameterList& parameters);
Convolution ExpanderOf(const BoundarySpec& spec, const std::string& name, int low, ParameterList& parameters);

class ResbmEncoder : public BoundaryEncoder {
 public:
  ResbmEncoder(const BoundarySpec& spec, int low, ParameterList& parameters);
  at::Tensor Compress(const at::Tensor& x) const;
  Tensors Forward(const at::Tensor& x, const Pass&) const override { return {Compress(x)}; }

 private:
  const Convolution compressor_;
  std::optional<Convolution> shortcut_conv_;
};

class ResbmDecoder : public BoundaryDecoder {
 public:
  ResbmDecoder(const BoundarySpec& spec, int low, ParameterList& parameters);
  at::Tensor Expand(const at::Tensor& crossed) const;
  at::Tensor Forward(const Tensors& crossed, const Pass&) const override { return Expand(crossed[0]); }

 private:
  const int low_;
  const bool transmitted_;
  const LowDimPath low_dim_;
  const Convolution expander_;
  std::optional<Convolution> shortcut_recon_;
};

// The block within a stage, where x is at hand: with kDirect the shortcut is x itself, with kProjected a 1x1
// convolution shortcut_conv(x), C -> C_out with the stride; otherwise what decoder(encoder(x)) gives. The other names
// are the boundary's. Of a validated spec. Throws c10::Error.
std::unique_ptr<Layer> MakeResbmLayer(const BoundarySpec& spec, ParameterList& parameters);

}  // namespace resbm::model

#endif  // RESBM_MODEL_BLOCKS_RESBM_H_
