#include "model/layers/layers.h"

#include <optional>
#include <utility>

#include "model/blocks/operators.h"
#include "model/blocks/resbm.h"
#include "model/layers/transformer_layers.h"

namespace resbm::model {
namespace {

// In-place ReLU and sum save the copy; norms and convolutions keep their inputs for backward, not their results.
class ConvStemLayer : public Layer {
 public:
  ConvStemLayer(const ConvStem& spec, ParameterList& parameters)
      : conv_(parameters, "conv",
              {.in_channels = spec.in_channels,
               .out_channels = spec.out_channels,
               .kernel = spec.kernel,
               .stride = spec.stride}),
        norm_(parameters, "norm", spec.norm_groups, spec.out_channels, spec.batch_norm) {}

  at::Tensor Forward(const at::Tensor& x, const Pass& pass) const override { return norm_(conv_(x), pass).relu_(); }

 private:
  const Convolution conv_;
  const Normalisation norm_;
};

struct ConvolutionAndNorm {
  Convolution conv;
  Normalisation norm;
  at::Tensor operator()(const at::Tensor& x, const Pass& pass) const { return norm(conv(x), pass); }
};

class ResidualBlockLayer : public Layer {
 public:
  ResidualBlockLayer(const ResidualBlock& spec, ParameterList& parameters) {
    const int in = spec.in_channels;
    const int out = spec.out_channels;
    if (spec.bottleneck) {
      const int inner = out / 4;
      Add(parameters, {.in_channels = in, .out_channels = inner}, spec.inner_norm_groups, spec.batch_norm);
      Add(parameters, {.in_channels = inner, .out_channels = inner, .kernel = 3, .stride = spec.stride},
          spec.inner_norm_groups, spec.batch_norm);
      Add(parameters, {.in_channels = inner, .out_channels = out}, spec.norm_groups, spec.batch_norm);
    } else {
      Add(parameters, {.in_channels = in, .out_channels = out, .kernel = 3, .stride = spec.stride}, spec.norm_groups,
          spec.batch_norm);
      Add(parameters, {.in_channels = out, .out_channels = out, .kernel = 3}, spec.norm_groups, spec.batch_norm);
    }
    if (spec.stride > 1 || in != out) {
      Convolution conv(parameters, "downsample.0", {.in_channels = in, .out_channels = out, .stride = spec.stride});
      Normalisation norm(parameters, "downsample.1", spec.norm_groups, out, spec.batch_norm);
      downsample_.emplace(ConvolutionAndNorm{std::move(conv), std::move(norm)});
    }
  }

  at::Tensor Forward(const at::Tensor& x, const Pass& pass) const override {
    at::Tensor y = x;
    for (std::size_t i = 0; i < convolutions_.size(); ++i) {
      y = convolutions_[i](y, pass);
      if (i + 1 < convolutions_.size()) y.relu_();
    }
    return y.add_(downsample_ ? (*downsample_)(x, pass) : x).relu_();
  }

 private:
  void Add(ParameterList& parameters, const Convolution::Options& options, int norm_groups, bool batch_norm) {
    const std::string number = std::to_string(convolutions_.size() + 1);
    Convolution conv(parameters, "conv" + number, options);
    Normalisation norm(parameters, "norm" + number, norm_groups, options.out_channels, batch_norm);
    convolutions_.push_back({std::move(conv), std::move(norm)});
  }

  std::vector<ConvolutionAndNorm> convolutions_;
  std::optional<ConvolutionAndNorm> downsample_;
};

class GlobalPoolLayer : public Layer {
 public:
  at::Tensor Forward(const at::Tensor& x, const Pass&) const override { return x.mean({2, 3}); }
};

class FlattenLayer : public Layer {
 public:
  // contiguous: with channels innermost a view would be in another order in memory.
  at::Tensor Forward(const at::Tensor& x, const Pass&) const override { return x.contiguous().view({x.size(0), -1}); }
};

class LinearLayer : public Layer {
 public:
  LinearLayer(const Linear& spec, ParameterList& parameters)
      : linear_(parameters, spec.in_features, spec.out_features, spec.relu ? kActivationGain : kLinearGain),
        relu_(spec.relu) {}

  at::Tensor Forward(const at::Tensor& x, const Pass&) const override {
    at::Tensor y = linear_(x);
    return relu_ ? y.relu_() : y;
  }

 private:
  const LinearMap linear_;
  const bool relu_;
};

struct Maker {
  const LayerSpec& layer;
  ParameterList& parameters;
  std::unique_ptr<Layer> operator()(const ConvStem& spec) const {
    return std::make_unique<ConvStemLayer>(spec, parameters);
  }
  std::unique_ptr<Layer> operator()(const ResidualBlock& spec) const {
    return std::make_unique<ResidualBlockLayer>(spec, parameters);
  }
  std::unique_ptr<Layer> operator()(const GlobalPool&) const { return std::make_unique<GlobalPoolLayer>(); }
  std::unique_ptr<Layer> operator()(const Flatten&) const { return std::make_unique<FlattenLayer>(); }
  std::unique_ptr<Layer> operator()(const Linear& spec) const {
    return std::make_unique<LinearLayer>(spec, parameters);
  }
  std::unique_ptr<Layer> operator()(const TokenEmbedding& spec) const {
    return MakeTokenEmbedding(layer, spec, parameters);
  }
  std::unique_ptr<Layer> operator()(const DecoderBlock& spec) const {
    return MakeDecoderBlock(layer, spec, parameters);
  }
  std::unique_ptr<Layer> operator()(const ResbmLayer& spec) const { return MakeResbmLayer(spec.block, parameters); }
  std::unique_ptr<Layer> operator()(const LanguageHead& spec) const { return MakeLanguageHead(spec, parameters); }
};

}  // namespace

std::unique_ptr<Layer> MakeLayer(const LayerSpec& spec, ParameterList& parameters) {
  parameters.Begin(spec.name, Origin{.boundary = false, .layer = spec.index});
  return std::visit(Maker{spec, parameters}, spec.kind);
}

}  // namespace resbm::model
