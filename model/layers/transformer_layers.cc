#include "model/layers/transformer_layers.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>

#include <optional>

#include "model/blocks/decoder_block.h"
#include "model/blocks/dropout.h"
#include "model/blocks/sequence_operators.h"

namespace resbm::model {
namespace {

constexpr double kEmbeddingDeviation = 0.02;

Origin OriginOf(const LayerSpec& layer) { return {.boundary = false, .layer = layer.index}; }

class TokenEmbeddingLayer : public Layer {
 public:
  TokenEmbeddingLayer(const LayerSpec& layer, const TokenEmbedding& spec, ParameterList& parameters)
      : weight_(parameters.Add("weight", {spec.vocabulary, spec.width}, Start::Normal(kEmbeddingDeviation))),
        dropout_(spec.dropout, OriginOf(layer), "embedding") {}

  at::Tensor Forward(const at::Tensor& tokens, const Pass& pass) const override {
    return dropout_(at::embedding(weight_, tokens), pass);
  }

 private:
  const at::Tensor weight_;
  const Dropout dropout_;
};

class DecoderBlockLayer : public Layer {
 public:
  DecoderBlockLayer(const LayerSpec& layer, const DecoderBlock& spec, ParameterList& parameters) {
    const BranchPlace place{.origin = OriginOf(layer), .block = layer.index};
    if (!spec.attention_in_boundary) attention_.emplace(parameters, spec, layer.input_shape.front(), place);
    if (!spec.mlp_in_boundary) mlp_.emplace(parameters, spec, spec.width, place);
  }

  at::Tensor Forward(const at::Tensor& x, const Pass& pass) const override {
    const at::Tensor h1 = attention_ ? x.add((*attention_)(x, pass)) : x;
    return mlp_ ? h1.add((*mlp_)(h1, pass)) : h1;
  }

 private:
  std::optional<AttentionBranch> attention_;
  std::optional<MlpBranch> mlp_;
};

class LanguageHeadLayer : public Layer {
 public:
  LanguageHeadLayer(const LanguageHead& spec, ParameterList& parameters)
      : weight_(parameters.Add("weight", {spec.vocabulary, spec.width}, Start::Normal(kEmbeddingDeviation))),
        norm_(parameters, "norm", spec.width, spec.norm_epsilon) {}

  at::Tensor Forward(const at::Tensor& x, const Pass&) const override { return at::linear(norm_(x), weight_); }

 private:
  const at::Tensor weight_;
  const RmsNormalisation norm_;
};

}  // namespace

std::unique_ptr<Layer> MakeTokenEmbedding(const LayerSpec& layer, const TokenEmbedding& spec,
                                          ParameterList& parameters) {
  return std::make_unique<TokenEmbeddingLayer>(layer, spec, parameters);
}

std::unique_ptr<Layer> MakeDecoderBlock(const LayerSpec& layer, const DecoderBlock& spec, ParameterList& parameters) {
  return std::make_unique<DecoderBlockLayer>(layer, spec, parameters);
}

std::unique_ptr<Layer> MakeLanguageHead(const LanguageHead& spec, ParameterList& parameters) {
  return std::make_unique<LanguageHeadLayer>(spec, parameters);
}

}  // namespace resbm::model
