#include "model/blocks/resbm.h"

#include <ATen/ops/cat.h>

namespace resbm::model {
namespace {

bool RebuiltFromLowDim(Shortcut shortcut) { return shortcut == Shortcut::kReconstruct || shortcut == Shortcut::kTransmit; }

class ResbmLayerImpl : public Layer {
 public:
  ResbmLayerImpl(const BoundarySpec& spec, ParameterList& parameters)
      : encoder_(spec, spec.crossing_channels, parameters),
        decoder_(spec, spec.crossing_channels, parameters),
        direct_(spec.shortcut == Shortcut::kDirect) {
    if (spec.shortcut != Shortcut::kProjected) return;
    shortcut_conv_ = Convolution(parameters, "shortcut_conv",
                                 {.in_channels = spec.in_channels,
                                  .out_channels = spec.out_channels,
                                  .stride = spec.stride,
                                  .bias = true,
                                  .start = KaimingOf(spec)(kLinearGain)});
  }

  at::Tensor Forward(const at::Tensor& x, const Pass&) const override {
    at::Tensor out = decoder_.Expand(encoder_.Compress(x));
    if (direct_) return out.add_(x);
    return shortcut_conv_ ? out.add_((*shortcut_conv_)(x)) : out;
  }

 private:
  const ResbmEncoder encoder_;
  const ResbmDecoder decoder_;
  const bool direct_;
  std::optional<Convolution> shortcut_conv_;
};

}  // namespace

KaimingStart KaimingOf(const BoundarySpec& spec) {
  return [fan_in = spec.init == BoundaryInit::kKaimingFanIn, factor = spec.init_gain](double gain) {
    return fan_in ? Start::KaimingFanIn(gain * factor) : Start::Kaiming(gain * factor);
  };
}

Convolution CompressorOf(const BoundarySpec& spec, const std::string& name, int low, ParameterList& parameters) {
  const bool tied = spec.init == BoundaryInit::kTiedOrthogonal;
  return Convolution(parameters, name,
                     {.in_channels = spec.in_channels,
                      .out_channels = low,
                      .stride = spec.stride,
                      .bias = true,
                      .start = tied ? Start::Orthogonal() : KaimingOf(spec)(kLinearGain)});
}

Convolution ExpanderOf(const BoundarySpec& spec, const std::string& name, int low, ParameterList& parameters) {
  const bool tied = spec.init == BoundaryInit::kTiedOrthogonal;
  return Convolution(parameters, name,
                     {.in_channels = low,
                      .out_channels = spec.out_channels,
                      .bias = true,
                      .start = tied ? Start::Transposed() : KaimingOf(spec)(kLinearGain)});
}

ResbmEncoder::ResbmEncoder(const BoundarySpec& spec, int low, ParameterList& parameters)
    : compressor_(CompressorOf(spec, "compressor", low, parameters)) {
  if (spec.shortcut == Shortcut::kTransmit) shortcut_conv_ = CompressorOf(spec, "shortcut_conv", low, parameters);
}

at::Tensor ResbmEncoder::Compress(const at::Tensor& x) const {
  at::Tensor z = compressor_(x);
  return shortcut_conv_ ? at::cat({z, (*shortcut_conv_)(x)}, 1) : z;
}

ResbmDecoder::ResbmDecoder(const BoundarySpec& spec, int low, ParameterList& parameters)
    : low_(low),
      transmitted_(spec.shortcut == Shortcut::kTransmit),
      low_dim_(parameters, spec.low_dim, low, spec.norm_groups, KaimingOf(spec)),
      expander_(ExpanderOf(spec, "expander", low, parameters)) {
  if (RebuiltFromLowDim(spec.shortcut)) shortcut_recon_ = ExpanderOf(spec, "shortcut_recon", low, parameters);
}

at::Tensor ResbmDecoder::Expand(const at::Tensor& crossed) const {
  const at::Tensor z = transmitted_ ? crossed.narrow(1, 0, low_) : crossed;
  at::Tensor out = expander_(low_dim_(z));
  if (!shortcut_recon_) return out;
  return out.add_((*shortcut_recon_)(transmitted_ ? crossed.narrow(1, low_, low_) : z));
}

std::unique_ptr<Layer> MakeResbmLayer(const BoundarySpec& spec, ParameterList& parameters) {
  return std::make_unique<ResbmLayerImpl>(spec, parameters);
}

}  // namespace resbm::model
