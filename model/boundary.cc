#include "model/boundary.h"

#include <ATen/ops/silu.h>

#include <algorithm>
#include <string>

#include "model/operators.h"

namespace resbm::model {
namespace {

class Identity : public BoundaryHalf {
 public:
  at::Tensor Forward(const at::Tensor& x) const override { return x; }
};

class ResbmEncoder : public BoundaryHalf {
 public:
  ResbmEncoder(const BoundarySpec& spec, ParameterList& parameters)
      : compressor_(parameters, "compressor",
                    {.in_channels = spec.in_channels,
                     .out_channels = spec.crossing_channels,
                     .bias = true,
                     .gain = kLinearGain}) {}

  at::Tensor Forward(const at::Tensor& x) const override { return compressor_(x); }

 private:
  const Convolution compressor_;
};

class ResbmDecoder : public BoundaryHalf {
 public:
  ResbmDecoder(const BoundarySpec& spec, ParameterList& parameters) {
    const int low = spec.crossing_channels;
    const int out = spec.out_channels;
    norm1_ = GroupNormalisation(parameters, "norm1", spec.norm_groups, low);
    low_dim_conv1_ =
        Convolution(parameters, "low_dim_conv1",
                    {.in_channels = low, .out_channels = low, .kernel = 3, .bias = true, .gain = kActivationGain});
    norm2_ = GroupNormalisation(parameters, "norm2", spec.norm_groups, low);
    low_dim_conv2_ =
        Convolution(parameters, "low_dim_conv2",
                    {.in_channels = low, .out_channels = low, .kernel = 3, .bias = true, .gain = kLinearGain});
    const Convolution::Options widen = {.in_channels = low, .out_channels = out, .bias = true, .gain = kLinearGain};
    expander_ = Convolution(parameters, "expander", widen);
    shortcut_recon_ = Convolution(parameters, "shortcut_recon", widen);
  }

  at::Tensor Forward(const at::Tensor& z) const override {
    const at::Tensor h = low_dim_conv1_(at::silu(norm1_(z)));
    return expander_(low_dim_conv2_(at::silu(norm2_(h)))).add_(shortcut_recon_(z));
  }

 private:
  GroupNormalisation norm1_;
  Convolution low_dim_conv1_;
  GroupNormalisation norm2_;
  Convolution low_dim_conv2_;
  Convolution expander_;
  Convolution shortcut_recon_;
};

void Begin(const BoundarySpec& spec, ParameterList& parameters) {
  std::string name = spec.cut_point;
  std::replace(name.begin(), name.end(), '.', '_');
  parameters.Begin("boundaries." + name, Origin{.boundary = true, .layer = spec.after_layer});
}

}  // namespace

std::unique_ptr<BoundaryHalf> MakeEncoder(const BoundarySpec& spec, ParameterList& parameters) {
  if (spec.kind == BoundaryKind::kIdentity) return std::make_unique<Identity>();
  Begin(spec, parameters);
  return std::make_unique<ResbmEncoder>(spec, parameters);
}

std::unique_ptr<BoundaryHalf> MakeDecoder(const BoundarySpec& spec, ParameterList& parameters) {
  if (spec.kind == BoundaryKind::kIdentity) return std::make_unique<Identity>();
  Begin(spec, parameters);
  return std::make_unique<ResbmDecoder>(spec, parameters);
}

}  // namespace resbm::model
