#include "tests/model/support/gpt.h"

#include <random>
#include <utility>

namespace resbm::model {
namespace {

constexpr int kVocabulary = 13;
constexpr int kWidth = 16;
constexpr int kBlocks = 4;

DecoderBlock BlockOf(const GptOptions& options) {
  DecoderBlock block;
  block.width = kWidth;
  block.heads = 2;
  block.hidden = 24;
  block.dropout = options.dropout;
  return block;
}

void Add(WholeModel& model, std::string name, decltype(LayerSpec::kind) kind, std::vector<std::int64_t> output) {
  LayerSpec layer;
  layer.index = static_cast<int>(model.layers.size());
  layer.name = std::move(name);
  layer.kind = std::move(kind);
  layer.input_shape = model.layers.empty() ? model.input_shape : model.layers.back().output_shape;
  layer.output_shape = std::move(output);
  model.layers.push_back(std::move(layer));
}

BoundarySpec BoundaryOf(const GptOptions& options, const LayerSpec& before) {
  BoundarySpec boundary;
  boundary.kind = options.kind;
  boundary.projection = options.projection;
  boundary.cut_point = before.name;
  boundary.after_layer = before.index;
  boundary.input_shape = boundary.output_shape = before.output_shape;
  boundary.in_channels = boundary.out_channels = kWidth;
  WireTensor z{
      .name = "z", .shape = before.output_shape, .activation_codec = options.codec, .gradient_codec = options.codec};
  if (options.kind == BoundaryKind::kTopK) {
    boundary.kept = options.context * kWidth / options.ratio;
    z.name = "values";
    z.shape = {boundary.kept};
    boundary.wire = {z,
                     {.name = "indices",
                      .shape = z.shape,
                      .activation_codec = WireCodec::kRaw,
                      .gradient_codec = WireCodec::kRaw,
                      .dtype = WireDtype::kInt16}};
    return boundary;
  }
  if (options.kind != BoundaryKind::kIdentity) {
    boundary.crossing_channels = kWidth / options.ratio;
    z.shape[1] = boundary.crossing_channels;
  }
  boundary.wire = {z};
  if (options.kind == BoundaryKind::kInBranch) boundary.decoder_block = BlockOf(options);
  return boundary;
}

}  // namespace

std::vector<GptVariant> GptVariants() {
  return {
      {"in_branch_truncate", BoundaryKind::kInBranch, Projection::kTruncate},
      {"in_branch_orthogonal", BoundaryKind::kInBranch, Projection::kOrthogonal},
      {"in_branch_learned", BoundaryKind::kInBranch, Projection::kLearned},
      {"adapter_truncate", BoundaryKind::kAdapter, Projection::kTruncate},
      {"adapter_orthogonal", BoundaryKind::kAdapter, Projection::kOrthogonal},
      {"adapter_learned", BoundaryKind::kAdapter, Projection::kLearned},
      {"identity", BoundaryKind::kIdentity, Projection::kTruncate},
      {"linear", BoundaryKind::kLinear, Projection::kTruncate},
      {"top_k", BoundaryKind::kTopK, Projection::kTruncate},
  };
}

WholeModel SmallGpt(const GptOptions& options) {
  WholeModel model;
  model.input = InputKind::kTokens;
  model.loss = Loss::kTokenCrossEntropy;
  model.input_shape = {options.context};
  model.optimizer = options.optimizer;
  const std::vector<std::int64_t> hidden = {options.context, kWidth};
  Add(model, "embedding", TokenEmbedding{kVocabulary, kWidth, options.dropout}, hidden);
  for (int i = 0; i < kBlocks; ++i) {
    DecoderBlock block = BlockOf(options);
    block.attention_in_boundary = options.kind == BoundaryKind::kInBranch && i > 0;
    block.mlp_in_boundary = options.kind == BoundaryKind::kInBranch && i + 1 < kBlocks;
    Add(model, "block" + std::to_string(i), block, hidden);
    if (i + 1 < kBlocks) model.boundaries.push_back(BoundaryOf(options, model.layers.back()));
  }
  Add(model, "head", LanguageHead{.width = kWidth, .vocabulary = kVocabulary}, {options.context, kVocabulary});
  return model;
}

WholeModel SmallGptThatShowsItsLogits(const GptOptions& options) {
  WholeModel model = SmallGpt(options);
  BoundarySpec open;
  open.kind = BoundaryKind::kIdentity;
  open.cut_point = "head";
  open.after_layer = model.layers.back().index;
  open.input_shape = open.output_shape = model.layers.back().output_shape;
  open.wire = {{.name = "z",
                .shape = open.input_shape,
                .activation_codec = WireCodec::kFp32,
                .gradient_codec = WireCodec::kFp32}};
  model.boundaries.push_back(open);
  Add(model, "flatten", Flatten{}, {options.context * kVocabulary});
  model.loss = Loss::kCrossEntropy;
  return model;
}

Batch MakeTokenBatch(const WholeModel& model, int samples, int micro_batches, std::uint32_t seed,
                     const std::vector<int>& valid_tokens) {
  std::mt19937 random(seed + 1);
  const std::int64_t context = model.input_shape[0];
  Batch batch;
  batch.samples = samples;
  std::uint64_t sample = std::uint64_t{seed} * 1000;
  for (int m = 0; m < micro_batches; ++m) {
    const std::int64_t size = samples / micro_batches + (m < samples % micro_batches ? 1 : 0);
    std::string tokens;
    std::vector<std::int16_t> labels;
    SampleIds ids;
    ids.epoch = 3;
    for (std::int64_t i = 0; i < size; ++i) {
      ids.indices.push_back(sample++);
      for (std::int64_t t = 0; t < context; ++t) {
        tokens.push_back(static_cast<char>(random() % kVocabulary));
        const auto next = static_cast<std::int16_t>(random() % kVocabulary);
        const bool masked = random() % 8 == 0;
        const bool valid = valid_tokens.empty()
                               ? !masked
                               : labels.size() < static_cast<std::size_t>(valid_tokens[static_cast<std::size_t>(m)]);
        labels.push_back(valid ? next : -1);
      }
    }
    EncodedTensor input;
    input.codec = WireCodec::kRaw;
    input.dtype = WireDtype::kUint8;
    input.dims = {size, context};
    input.payload = SharedBytes::CopyOf(tokens);
    batch.images.push_back(input);
    EncodedTensor target = input;
    target.dtype = WireDtype::kInt16;
    target.payload = SharedBytes::CopyOf({reinterpret_cast<const char*>(labels.data()), labels.size() * 2});
    batch.labels.push_back(target);
    batch.ids.push_back(ids);
  }
  return batch;
}

}  // namespace resbm::model
