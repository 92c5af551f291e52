#include "model/boundary.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <optional>
#include <string>

#include "model/low_dim.h"
#include "model/operators.h"

namespace resbm::model {
namespace {

KaimingStart KaimingOf(const BoundarySpec& spec) {
  return [fan_in = spec.init == BoundaryInit::kKaimingFanIn, factor = spec.init_gain](double gain) {
    return fan_in ? Start::KaimingFanIn(gain * factor) : Start::Kaiming(gain * factor);
  };
}

Convolution Down(const BoundarySpec& spec, const std::string& name, int low, ParameterList& parameters) {
  const bool tied = spec.init == BoundaryInit::kTiedOrthogonal;
  return Convolution(parameters, name,
                     {.in_channels = spec.in_channels,
                      .out_channels = low,
                      .stride = spec.stride,
                      .bias = true,
                      .start = tied ? Start::Orthogonal() : KaimingOf(spec)(kLinearGain)});
}

Convolution Up(const BoundarySpec& spec, const std::string& name, int low, ParameterList& parameters) {
  const bool tied = spec.init == BoundaryInit::kTiedOrthogonal;
  return Convolution(parameters, name,
                     {.in_channels = low,
                      .out_channels = spec.out_channels,
                      .bias = true,
                      .start = tied ? Start::Transposed() : KaimingOf(spec)(kLinearGain)});
}

class Identity : public BoundaryHalf {
 public:
  at::Tensor Forward(const at::Tensor& x) const override { return x; }
};

class ResbmEncoder : public BoundaryHalf {
 public:
  ResbmEncoder(const BoundarySpec& spec, int low, ParameterList& parameters)
      : compressor_(Down(spec, "compressor", low, parameters)) {
    if (spec.shortcut == Shortcut::kTransmit) shortcut_conv_ = Down(spec, "shortcut_conv", low, parameters);
  }

  at::Tensor Forward(const at::Tensor& x) const override {
    at::Tensor z = compressor_(x);
    return shortcut_conv_ ? at::cat({z, (*shortcut_conv_)(x)}, 1) : z;
  }

 private:
  const Convolution compressor_;
  std::optional<Convolution> shortcut_conv_;
};

class ResbmDecoder : public BoundaryHalf {
 public:
  ResbmDecoder(const BoundarySpec& spec, int low, ParameterList& parameters)
      : low_(low),
        transmitted_(spec.shortcut == Shortcut::kTransmit),
        low_dim_(parameters, spec.low_dim, low, spec.norm_groups, KaimingOf(spec)),
        expander_(Up(spec, "expander", low, parameters)) {
    if (spec.shortcut != Shortcut::kNone) shortcut_recon_ = Up(spec, "shortcut_recon", low, parameters);
  }

  at::Tensor Forward(const at::Tensor& crossed) const override {
    const at::Tensor z = transmitted_ ? crossed.narrow(1, 0, low_) : crossed;
    at::Tensor out = expander_(low_dim_(z));
    if (!shortcut_recon_) return out;
    return out.add_((*shortcut_recon_)(transmitted_ ? crossed.narrow(1, low_, low_) : z));
  }

 private:
  const int low_;
  const bool transmitted_;
  const LowDimPath low_dim_;
  const Convolution expander_;
  std::optional<Convolution> shortcut_recon_;
};

class LinearDecoder : public BoundaryHalf {
 public:
  LinearDecoder(const BoundarySpec& spec, ParameterList& parameters)
      : expander_(Up(spec, "expander", spec.crossing_channels, parameters)) {}

  at::Tensor Forward(const at::Tensor& z) const override { return expander_(z); }

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

class BottleneckEncoder : public BoundaryHalf {
 public:
  BottleneckEncoder(const BoundarySpec& spec, ParameterList& parameters)
      : down_(spec, 1, spec.norm_groups,
              {.in_channels = spec.in_channels, .out_channels = spec.crossing_channels, .stride = spec.stride},
              parameters) {}

  at::Tensor Forward(const at::Tensor& x) const override { return down_(x); }

 private:
  const ConvNormRelu down_;
};

class BottleneckDecoder : public BoundaryHalf {
 public:
  BottleneckDecoder(const BoundarySpec& spec, ParameterList& parameters)
      : middle_(spec, 2, spec.norm_groups,
                {.in_channels = spec.crossing_channels, .out_channels = spec.crossing_channels, .kernel = 3},
                parameters),
        up_(spec, 3, spec.output_norm_groups,
            {.in_channels = spec.crossing_channels, .out_channels = spec.out_channels}, parameters) {}

  at::Tensor Forward(const at::Tensor& z) const override { return up_(middle_(z)); }

 private:
  const ConvNormRelu middle_;
  const ConvNormRelu up_;
};

class BlockAfterIdentity : public BoundaryHalf {
 public:
  BlockAfterIdentity(const BoundarySpec& spec, ParameterList& parameters)
      : encoder_(spec, spec.block_channels, parameters), decoder_(spec, spec.block_channels, parameters) {}

  at::Tensor Forward(const at::Tensor& x) const override { return decoder_.Forward(encoder_.Forward(x)).add_(x); }

 private:
  const ResbmEncoder encoder_;
  const ResbmDecoder decoder_;
};

void Begin(const BoundarySpec& spec, ParameterList& parameters) {
  std::string name = spec.cut_point;
  std::replace(name.begin(), name.end(), '.', '_');
  parameters.Begin("boundaries." + name, Origin{.boundary = true, .layer = spec.after_layer});
}

}  // namespace

std::unique_ptr<BoundaryHalf> MakeEncoder(const BoundarySpec& spec, ParameterList& parameters) {
  Begin(spec, parameters);
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
  }
  return std::make_unique<Identity>();
}

std::unique_ptr<BoundaryHalf> MakeDecoder(const BoundarySpec& spec, ParameterList& parameters) {
  Begin(spec, parameters);
  switch (spec.kind) {
    case BoundaryKind::kIdentity: break;
    case BoundaryKind::kIdentityBlock: return std::make_unique<BlockAfterIdentity>(spec, parameters);
    case BoundaryKind::kResbm: return std::make_unique<ResbmDecoder>(spec, spec.crossing_channels, parameters);
    case BoundaryKind::kLinear: return std::make_unique<LinearDecoder>(spec, parameters);
    case BoundaryKind::kBottleneck: return std::make_unique<BottleneckDecoder>(spec, parameters);
  }
  return std::make_unique<Identity>();
}

}  // namespace resbm::model
