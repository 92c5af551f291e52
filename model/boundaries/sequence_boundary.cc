#include "model/boundaries/sequence_boundary.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "model/blocks/decoder_block.h"
#include "model/blocks/sequence_operators.h"

namespace resbm::model {
namespace {

// Of the blocks, whose norms the boundary's are like. kAdapter has no block to take it from.
constexpr double kNormEpsilon = 1e-5;

// As wide as the stream that it adds to, however small b is.
int AdapterHidden(const BoundarySpec& spec) { return std::max(4 * spec.crossing_channels, spec.in_channels); }

Origin OriginOf(const BoundarySpec& spec) { return {.boundary = true, .layer = spec.after_layer}; }

Start LinearStart(const BoundarySpec& spec, bool down) {
  if (spec.init == BoundaryInit::kTiedOrthogonal) return down ? Start::Orthogonal() : Start::Transposed();
  return spec.init == BoundaryInit::kKaimingFanIn ? Start::KaimingFanIn(spec.init_gain)
                                                  : Start::Kaiming(spec.init_gain);
}

// The weight of T (`down`) or T'; undefined where they only choose coordinates.
at::Tensor ProjectionWeight(const BoundarySpec& spec, bool down, ParameterList& parameters) {
  const std::string name = down ? "shortcut_down.weight" : "shortcut_up.weight";
  const std::int64_t width = spec.in_channels;
  const std::int64_t low = spec.crossing_channels;
  const std::vector<std::int64_t> shape = down ? std::vector{low, width} : std::vector{width, low};
  const Start start = down ? Start::Orthogonal() : Start::Transposed();
  switch (spec.projection) {
    case Projection::kTruncate: break;
    case Projection::kOrthogonal: return parameters.AddBuffer(name, shape, start);
    case Projection::kLearned: return parameters.Add(name, shape, start, {.orthonormal = true});
  }
  return at::Tensor();
}

// T: [N, T, width] -> [N, T, b].
class DownProjection {
 public:
  DownProjection(const BoundarySpec& spec, ParameterList& parameters)
      : low_(spec.crossing_channels), weight_(ProjectionWeight(spec, /*down=*/true, parameters)) {}
  at::Tensor operator()(const at::Tensor& h) const {
    return weight_.defined() ? at::linear(h, weight_) : h.narrow(-1, 0, low_);
  }

 private:
  const std::int64_t low_;
  const at::Tensor weight_;
};

// T': [N, T, b] -> [N, T, width].
class UpProjection {
 public:
  UpProjection(const BoundarySpec& spec, ParameterList& parameters)
      : padding_(spec.in_channels - spec.crossing_channels),
        weight_(ProjectionWeight(spec, /*down=*/false, parameters)) {}
  at::Tensor operator()(const at::Tensor& z) const {
    return weight_.defined() ? at::linear(z, weight_) : at::pad(z, {0, padding_});
  }

 private:
  const std::int64_t padding_;
  const at::Tensor weight_;
};

class InBranchEncoder : public BoundaryEncoder {
 public:
  InBranchEncoder(const BoundarySpec& spec, ParameterList& parameters)
      : mlp_(parameters, spec.decoder_block, spec.crossing_channels,
             {.origin = OriginOf(spec), .block = spec.after_layer, .gain = spec.init_gain}),
        down_(spec, parameters) {}

  Tensors Forward(const at::Tensor& h1, const Pass& pass) const override { return {down_(h1).add(mlp_(h1, pass))}; }

 private:
  const MlpBranch mlp_;
  const DownProjection down_;
};

class InBranchDecoder : public BoundaryDecoder {
 public:
  InBranchDecoder(const BoundarySpec& spec, ParameterList& parameters)
      : decompressor_(parameters, "decompressor", spec.crossing_channels, spec.in_channels, InnerStart(spec.init_gain)),
        attention_(parameters, spec.decoder_block, spec.output_shape.front(),
                   {.origin = OriginOf(spec), .block = spec.after_layer + 1, .gain = spec.init_gain}),
        up_(spec, parameters) {}

  at::Tensor Forward(const Tensors& crossed, const Pass& pass) const override {
    const at::Tensor& z = crossed[0];
    return up_(z).add(attention_(at::relu(decompressor_(z)), pass));
  }

 private:
  const MatrixMap decompressor_;
  const AttentionBranch attention_;
  const UpProjection up_;
};

class AdapterEncoder : public BoundaryEncoder {
 public:
  AdapterEncoder(const BoundarySpec& spec, ParameterList& parameters)
      : norm_(parameters, "norm_in", spec.in_channels, kNormEpsilon),
        compressor_(parameters, "compressor", spec.in_channels, spec.crossing_channels,
                    OutputStart(spec.after_layer, spec.init_gain)),
        down_(spec, parameters) {}

  Tensors Forward(const at::Tensor& h, const Pass&) const override { return {down_(h).add(compressor_(norm_(h)))}; }

 private:
  const RmsNormalisation norm_;
  const MatrixMap compressor_;
  const DownProjection down_;
};

class AdapterDecoder : public BoundaryDecoder {
 public:
  AdapterDecoder(const BoundarySpec& spec, ParameterList& parameters)
      : norm_(parameters, "norm1", spec.crossing_channels, kNormEpsilon),
        low_dim_(parameters, "low_dim", spec.crossing_channels, AdapterHidden(spec), InnerStart(spec.init_gain)),
        expander_(parameters, "expander", AdapterHidden(spec), spec.in_channels,
                  OutputStart(spec.after_layer, spec.init_gain)),
        up_(spec, parameters) {}

  at::Tensor Forward(const Tensors& crossed, const Pass&) const override {
    const at::Tensor& z = crossed[0];
    return up_(z).add(expander_(at::silu(low_dim_(norm_(z)))));
  }

 private:
  const RmsNormalisation norm_;
  const MatrixMap low_dim_;
  const MatrixMap expander_;
  const UpProjection up_;
};

class LinearEncoder : public BoundaryEncoder {
 public:
  LinearEncoder(const BoundarySpec& spec, ParameterList& parameters)
      : compressor_(parameters, "compressor", spec.in_channels, spec.crossing_channels,
                    LinearStart(spec, /*down=*/true)) {}

  Tensors Forward(const at::Tensor& h, const Pass&) const override { return {compressor_(h)}; }

 private:
  const MatrixMap compressor_;
};

class LinearDecoder : public BoundaryDecoder {
 public:
  LinearDecoder(const BoundarySpec& spec, ParameterList& parameters)
      : expander_(parameters, "expander", spec.crossing_channels, spec.in_channels, LinearStart(spec, /*down=*/false)) {
  }

  at::Tensor Forward(const Tensors& crossed, const Pass&) const override { return expander_(crossed[0]); }

 private:
  const MatrixMap expander_;
};

}  // namespace

std::unique_ptr<BoundaryEncoder> MakeSequenceEncoder(const BoundarySpec& spec, ParameterList& parameters) {
  if (spec.kind == BoundaryKind::kInBranch) return std::make_unique<InBranchEncoder>(spec, parameters);
  if (spec.kind == BoundaryKind::kAdapter) return std::make_unique<AdapterEncoder>(spec, parameters);
  return std::make_unique<LinearEncoder>(spec, parameters);
}

std::unique_ptr<BoundaryDecoder> MakeSequenceDecoder(const BoundarySpec& spec, ParameterList& parameters) {
  if (spec.kind == BoundaryKind::kInBranch) return std::make_unique<InBranchDecoder>(spec, parameters);
  if (spec.kind == BoundaryKind::kAdapter) return std::make_unique<AdapterDecoder>(spec, parameters);
  return std::make_unique<LinearDecoder>(spec, parameters);
}

}  // namespace resbm::model
