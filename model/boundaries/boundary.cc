#include "model/boundaries/boundary.h"

#include <algorithm>
#include <string>

#include "model/blocks/operators.h"
#include "model/blocks/resbm.h"
#include "model/boundaries/sequence_boundary.h"
#include "model/boundaries/top_k.h"

namespace resbm::model {
namespace {

class IdentityEncoder : public BoundaryEncoder {
 public:
  Tensors Forward(const at::Tensor& x, const Pass&) const override { return {x}; }
};

class IdentityDecoder : public BoundaryDecoder {
 public:
  at::Tensor Forward(const Tensors& crossed, const Pass&) const override { return crossed[0]; }
};

class LinearDecoder : public BoundaryDecoder {
 public:
  LinearDecoder(const BoundarySpec& spec, ParameterList& parameters)
      : expander_(ExpanderOf(spec, "expander", spec.crossing_channels, parameters)) {}

  at::Tensor Forward(const Tensors& crossed, const Pass&) const override { return expander_(crossed[0]); }

 private:
  const Convolution expander_;
};

// One convolution of the classic block with its norm and ReLU.
struct ConvNormRelu {
  ConvNormRelu(const BoundarySpec& spec, int number, int groups, Convolution::Options options,
               ParameterList& parameters) {
    options.start = KaimingOf(spec)(kActivationGain);
    conv = Convolution(parameters, "conv" + std::to_string(number), options);
    norm = GroupNormalisation(parameters, "norm" + std::to_string(number), groups, options.out_channels);
  }
  at::Tensor operator()(const at::Tensor& x) const { return norm(conv(x)).relu_(); }

  Convolution conv;
  GroupNormalisation norm;
};

class BottleneckEncoder : public BoundaryEncoder {
 public:
  BottleneckEncoder(const BoundarySpec& spec, ParameterList& parameters)
      : down_(spec, 1, spec.norm_groups,
              {.in_channels = spec.in_channels, .out_channels = spec.crossing_channels, .stride = spec.stride},
              parameters) {}

  Tensors Forward(const at::Tensor& x, const Pass&) const override { return {down_(x)}; }

 private:
  const ConvNormRelu down_;
};

class BottleneckDecoder : public BoundaryDecoder {
 public:
  BottleneckDecoder(const BoundarySpec& spec, ParameterList& parameters)
      : middle_(spec, 2, spec.norm_groups,
                {.in_channels = spec.crossing_channels, .out_channels = spec.crossing_channels, .kernel = 3},
                parameters),
        up_(spec, 3, spec.output_norm_groups,
            {.in_channels = spec.crossing_channels, .out_channels = spec.out_channels}, parameters) {}

  at::Tensor Forward(const Tensors& crossed, const Pass&) const override { return up_(middle_(crossed[0])); }

 private:
  const ConvNormRelu middle_;
  const ConvNormRelu up_;
};

class BlockAfterIdentity : public BoundaryDecoder {
 public:
  BlockAfterIdentity(const BoundarySpec& spec, ParameterList& parameters)
      : encoder_(spec, spec.block_channels, parameters), decoder_(spec, spec.block_channels, parameters) {}

  at::Tensor Forward(const Tensors& crossed, const Pass&) const override {
    return decoder_.Expand(encoder_.Compress(crossed[0])).add_(crossed[0]);
  }

 private:
  const ResbmEncoder encoder_;
  const ResbmDecoder decoder_;
};

void Begin(const BoundarySpec& spec, ParameterList& parameters) {
  std::string name = spec.cut_point;
  std::replace(name.begin(), name.end(), '.', '_');
  parameters.Begin("boundaries." + name, Origin{.boundary = true, .layer = spec.after_layer});
}

// Has linear maps on the last dimension for 1x1 convolutions.
bool IsSequence(const BoundarySpec& spec) {
  return spec.kind == BoundaryKind::kInBranch || spec.kind == BoundaryKind::kAdapter ||
         (spec.kind == BoundaryKind::kLinear && spec.input_shape.size() == 2);
}

}  // namespace

std::unique_ptr<BoundaryEncoder> MakeEncoder(const BoundarySpec& spec, ParameterList& parameters) {
  Begin(spec, parameters);
  if (IsSequence(spec)) return MakeSequenceEncoder(spec, parameters);
  switch (spec.kind) {
    case BoundaryKind::kIdentity:
    case BoundaryKind::kIdentityBlock: break;
    case BoundaryKind::kResbm: return std::make_unique<ResbmEncoder>(spec, spec.crossing_channels, parameters);
    case BoundaryKind::kLinear: {
      // Nothing but the compressor, whatever a shortcut the spec names.
      BoundarySpec plain = spec;
      plain.shortcut = Shortcut::kNone;
      return std::make_unique<ResbmEncoder>(plain, spec.crossing_channels, parameters);
    }
    case BoundaryKind::kBottleneck: return std::make_unique<BottleneckEncoder>(spec, parameters);
    case BoundaryKind::kTopK: return std::make_unique<TopKEncoder>(spec);
    case BoundaryKind::kInBranch:
    case BoundaryKind::kAdapter: break;
  }
  return std::make_unique<IdentityEncoder>();
}

std::unique_ptr<BoundaryDecoder> MakeDecoder(const BoundarySpec& spec, ParameterList& parameters) {
  Begin(spec, parameters);
  if (IsSequence(spec)) return MakeSequenceDecoder(spec, parameters);
  switch (spec.kind) {
    case BoundaryKind::kIdentity: break;
    case BoundaryKind::kIdentityBlock: return std::make_unique<BlockAfterIdentity>(spec, parameters);
    case BoundaryKind::kResbm: return std::make_unique<ResbmDecoder>(spec, spec.crossing_channels, parameters);
    case BoundaryKind::kLinear: return std::make_unique<LinearDecoder>(spec, parameters);
    case BoundaryKind::kBottleneck: return std::make_unique<BottleneckDecoder>(spec, parameters);
    case BoundaryKind::kTopK: return std::make_unique<TopKDecoder>(spec);
    case BoundaryKind::kInBranch:
    case BoundaryKind::kAdapter: break;
  }
  return std::make_unique<IdentityDecoder>();
}

}  // namespace resbm::model
