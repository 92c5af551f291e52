#include "coordinator/plan/model_plan_transformer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace resbm::coordinator {
namespace {

// Bytes.
constexpr int kVocabulary = 256;
constexpr double kNormEpsilon = 1e-5;
constexpr int kMostBlocks = 998;
constexpr int kLargestWidth = 16384;
constexpr int kLargestHidden = 1 << 17;
constexpr int kLongestContext = 1 << 16;
constexpr std::int64_t kMostValues = 1 << 26;  // of a sample's activation
constexpr int kHiddenMultiple = 64;

// 8/3 of the width, so that three matrices hold as much as the two of a plain MLP of four times the width
// (https://arxiv.org/abs/2002.05202), rounded up.
int DefaultHidden(int width) {
  const int hidden = (8 * width + 2) / 3;
  return (hidden + kHiddenMultiple - 1) / kHiddenMultiple * kHiddenMultiple;
}

bool Check(const v1::Transformer& t, FieldErrors& errors) {
  const std::string path = "model.transformer.";
  bool good = InRange(t.layers(), kMostBlocks, path + "layers", errors);
  good &= InRange(t.width(), kLargestWidth, path + "width", errors);
  good &= InRange(t.context(), kLongestContext, path + "context", errors);
  if (t.has_hidden()) good &= InRange(t.hidden(), kLargestHidden, path + "hidden", errors);
  const auto add = [&](const char* field, const auto&... parts) {
    errors.Add(path + field, parts...);
    good = false;
  };
  if (good && (t.heads() < 1 || t.width() % t.heads() != 0)) {
    add("heads", t.heads(), " does not divide the width of ", t.width());
  } else if (good && t.width() / t.heads() % 2 != 0) {
    add("heads", t.heads(), " makes heads of ", t.width() / t.heads(),
        " coordinates; rotary positions turn pairs, so the size must be even");
  }
  if (good && std::int64_t{t.width()} * t.context() > kMostValues) {
    add("context", t.context(), " tokens of width ", t.width(), " make more than ", kMostValues,
        " values a sample; lower one of them");
  }
  if (!(t.dropout() >= 0 && t.dropout() < 1)) {
    add("dropout", t.dropout(), " is out of range; it must be from 0 to below 1");
  }
  if (!std::isfinite(t.rotary_base()) || t.rotary_base() < 1) {
    add("rotary_base", t.rotary_base(), " is out of range; it must be 1 or more");
  }
  return good;
}

bool SplitsBlock(const BoundaryChanges& changes, const std::string& layer) {
  const auto change = changes.find(layer);
  return change != changes.end() && change->second.splits_block;
}

}  // namespace

void SequenceCost::AddAttention(std::uint64_t tokens, const v1::DecoderBlock& block) {
  const std::uint64_t width = block.width();
  AddRmsNorm(width);
  AddLinear(tokens, width, 3 * width);
  flops += 2 * (2 * tokens * tokens * width);  // scores, and what they read
  AddLinear(tokens, width, width);
}

void SequenceCost::AddMlp(std::uint64_t tokens, const v1::DecoderBlock& block, std::uint64_t out) {
  AddRmsNorm(block.width());
  AddLinear(tokens, block.width(), block.hidden());
  AddLinear(tokens, block.width(), block.hidden());
  AddLinear(tokens, block.hidden(), out);
}

std::vector<v1::LayerSpec> TransformerLayers(const v1::Transformer& transformer, const BoundaryChanges& changes,
                                             FieldErrors& errors) {
  if (!Check(transformer, errors)) return {};
  const std::int64_t context = transformer.context();
  const std::int64_t width = transformer.width();
  std::vector<v1::LayerSpec> layers;
  // The layer's own message is the caller's to fill in.
  const auto add = [&](std::string name, const SequenceCost& cost) -> v1::LayerSpec& {
    v1::LayerSpec& layer = layers.emplace_back();
    layer.set_index(static_cast<std::uint32_t>(layers.size() - 1));
    layer.set_name(std::move(name));
    layer.set_parameters(cost.parameters);
    layer.set_forward_flops(cost.flops);
    layer.add_input_shape(context);
    layer.add_output_shape(context);
    return layer;
  };

  SequenceCost embedding;
  embedding.parameters = static_cast<std::uint64_t>(kVocabulary * width);
  v1::LayerSpec& first = add("embedding", embedding);
  first.add_output_shape(width);
  first.mutable_token_embedding()->set_vocabulary(kVocabulary);
  first.mutable_token_embedding()->set_width(static_cast<std::uint32_t>(width));
  first.mutable_token_embedding()->set_dropout(transformer.dropout());

  v1::DecoderBlock whole;
  whole.set_width(static_cast<std::uint32_t>(width));
  whole.set_heads(transformer.heads());
  whole.set_hidden(transformer.has_hidden() ? transformer.hidden() : DefaultHidden(transformer.width()));
  whole.set_dropout(transformer.dropout());
  whole.set_rotary_base(transformer.rotary_base());
  whole.set_norm_epsilon(kNormEpsilon);
  for (int i = 0; i < transformer.layers(); ++i) {
    v1::DecoderBlock block = whole;
    const std::string name = absl::StrCat("block", i);
    block.set_attention_in_boundary(i > 0 && SplitsBlock(changes, absl::StrCat("block", i - 1)));
    block.set_mlp_in_boundary(i + 1 < transformer.layers() && SplitsBlock(changes, name));
    SequenceCost cost;
    if (!block.attention_in_boundary()) cost.AddAttention(context, block);
    if (!block.mlp_in_boundary()) cost.AddMlp(context, block, block.width());
    v1::LayerSpec& layer = add(name, cost);
    layer.add_input_shape(width);
    layer.add_output_shape(width);
    *layer.mutable_decoder_block() = std::move(block);
  }

  SequenceCost head;
  head.AddRmsNorm(width);
  head.AddLinear(context, width, kVocabulary);
  v1::LayerSpec& last = add("head", head);
  last.add_input_shape(width);
  last.add_output_shape(kVocabulary);
  last.mutable_language_head()->set_width(static_cast<std::uint32_t>(width));
  last.mutable_language_head()->set_vocabulary(kVocabulary);
  last.mutable_language_head()->set_norm_epsilon(kNormEpsilon);
  return layers;
}

void SetSequenceBoundaryCosts(v1::BoundarySpec* spec) {
  const auto tokens = static_cast<std::uint64_t>(spec->input_shape(0));
  const std::uint64_t width = spec->in_channels(), low = spec->crossing_channels();
  SequenceCost encoder, decoder;
  switch (spec->kind()) {
    case v1::BoundarySpec::IN_BRANCH:
      encoder.AddMlp(tokens, spec->decoder_block(), low);
      decoder.AddLinear(tokens, low, width);
      decoder.AddAttention(tokens, spec->decoder_block());
      break;
    case v1::BoundarySpec::ADAPTER:
      encoder.AddRmsNorm(width);
      encoder.AddLinear(tokens, width, low);
      decoder.AddRmsNorm(low);
      decoder.AddLinear(tokens, low, std::max(4 * low, width));
      decoder.AddLinear(tokens, std::max(4 * low, width), width);
      break;
    default: encoder.AddLinear(tokens, width, low); decoder.AddLinear(tokens, low, width);
  }
  if (spec->projection() == v1::BoundarySpec::LEARNED || spec->projection() == v1::BoundarySpec::ORTHOGONAL) {
    SequenceCost projection;
    projection.AddLinear(tokens, width, low);
    const std::uint64_t trained = spec->projection() == v1::BoundarySpec::LEARNED ? projection.parameters : 0;
    encoder.parameters += trained;
    decoder.parameters += trained;
    encoder.flops += projection.flops;
    decoder.flops += projection.flops;
  }
  spec->set_encoder_parameters(encoder.parameters);
  spec->set_decoder_parameters(decoder.parameters);
  spec->set_encoder_flops(encoder.flops);
  spec->set_decoder_flops(decoder.flops);
}

}  // namespace resbm::coordinator
