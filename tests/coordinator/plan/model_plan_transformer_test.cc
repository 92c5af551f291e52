// Transformers and the boundaries of sequences: exact parameters, FLOPs, shapes and tensors that cross.
#include <string>
#include <vector>

#include "coordinator/plan/model_plan.h"
#include "coordinator/plan/partition.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

template <typename Message>
void ExpectEqual(const Message& got, const std::string& expected) {
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(got, Parse<Message>(expected))) << got.DebugString();
}

// Three blocks of width 32 on 16 tokens; the hidden width is 8/3 of 32, rounded up: 128.
v1::Job JobWith(const std::string& more, const std::string& transformer = "") {
  v1::Job job = Parse<v1::Job>("model { transformer { layers: 3 width: 32 heads: 4 context: 16 } } " + more);
  job.mutable_model()->mutable_transformer()->MergeFrom(Parse<v1::Transformer>(transformer));
  return job;
}

ModelPlan Plan(const std::string& more, const std::string& transformer = "") {
  auto plan = ExpandModel(JobWith(more, transformer));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : ModelPlan{{{}, {}, {}, {}, {}}, {{}, {}}};
}

std::string ErrorOf(const std::string& more, const std::string& transformer = "") {
  const auto plan = ExpandModel(JobWith(more, transformer));
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << more << transformer;
  return std::string(plan.status().message());
}

// After block0, where 8 of 32 coordinates cross.
v1::BoundarySpec Boundary(const std::string& boundary) {
  const ModelPlan plan = Plan("boundary { ratio: 4 } cut_point { after: 'block0' boundary { " + boundary + " } }");
  EXPECT_EQ(plan.boundaries.size(), 1u);
  return plan.boundaries[0];
}

TEST(TransformerPlan, LayersAreExact) {
  const ModelPlan plan = Plan("", "dropout: 0.1");
  ASSERT_EQ(plan.layers.size(), 5u);
  ExpectEqual(plan.layers[0],
              "name: 'embedding' input_shape: 16 output_shape: [16, 32] parameters: 8192 "
              "token_embedding { vocabulary: 256 width: 32 dropout: 0.1 }");
  // Attention: a norm of 32, 3 and 1 matrices of 32 x 32; scores and what they read, 16 x 16 x 32 each.
  // MLP: a norm of 32, 3 matrices of 32 x 128.
  ExpectEqual(plan.layers[2],
              "index: 2 name: 'block1' input_shape: [16, 32] output_shape: [16, 32] parameters: 16448 "
              "forward_flops: 557056 decoder_block { width: 32 heads: 4 hidden: 128 dropout: 0.1 rotary_base: 10000 "
              "norm_epsilon: 1e-5 }");
  ExpectEqual(plan.layers[4],
              "index: 4 name: 'head' input_shape: [16, 32] output_shape: [16, 256] parameters: 8224 "
              "forward_flops: 262144 language_head { width: 32 vocabulary: 256 norm_epsilon: 1e-5 }");
  EXPECT_EQ(plan.parameters(), 8192u + 3 * 16448 + 8224);
  EXPECT_EQ(plan.forward_flops(), 3 * 557056u + 262144);
}

TEST(TransformerPlan, HiddenAndRotaryBaseMayBeSet) {
  const v1::DecoderBlock block = Plan("", "hidden: 100 rotary_base: 500").layers[1].decoder_block();
  EXPECT_EQ(block.hidden(), 100u);
  EXPECT_EQ(block.rotary_base(), 500);
  EXPECT_EQ(Plan("", "width: 256").layers[1].decoder_block().hidden(), 704u);
  EXPECT_EQ(Plan("", "width: 96").layers[1].decoder_block().hidden(), 256u);  // 8/3 of it exactly
}

TEST(TransformerPlan, SizesThatDoNotWorkAreRefused) {
  const std::string path = "model.transformer.";
  EXPECT_EQ(ErrorOf("", "layers: 0"), path + "layers: 0 is too small; at least 1");
  EXPECT_EQ(ErrorOf("", "layers: 999"), path + "layers: 999 is too large; at most 998");
  EXPECT_EQ(ErrorOf("", "context: 0"), path + "context: 0 is too small; at least 1");
  EXPECT_EQ(ErrorOf("", "hidden: 0"), path + "hidden: 0 is too small; at least 1");
  EXPECT_EQ(ErrorOf("", "heads: 5"), path + "heads: 5 does not divide the width of 32");
  EXPECT_EQ(ErrorOf("", "heads: 0"), path + "heads: 0 does not divide the width of 32");
  EXPECT_EQ(ErrorOf("", "heads: 32"),
            path + "heads: 32 makes heads of 1 coordinates; rotary positions turn pairs, so the size must be even");
  EXPECT_EQ(ErrorOf("", "width: 16384 context: 8192"),
            path + "context: 8192 tokens of width 16384 make more than 67108864 values a sample; lower one of them");
  EXPECT_EQ(ErrorOf("", "dropout: 1"), path + "dropout: 1 is out of range; it must be from 0 to below 1");
  EXPECT_EQ(ErrorOf("", "dropout: nan"), path + "dropout: nan is out of range; it must be from 0 to below 1");
  EXPECT_EQ(ErrorOf("", "rotary_base: 0"), path + "rotary_base: 0 is out of range; it must be 1 or more");
}

// The parts are those of model/boundaries/sequence_boundary.h, with b = 8.
TEST(SequenceBoundaryPlan, AnAdapterIsExact) {
  const std::string common =
      "cut_point: 'block0' after_layer: 1 kind: ADAPTER in_channels: 32 out_channels: 32 crossing_channels: 8 "
      "stride: 1 init { gain: 1 } input_shape: [16, 32] output_shape: [16, 32] "
      "wire { name: 'z' shape: [16, 8] activation_codec: CODEC_FP16 gradient_codec: CODEC_FP16 } ";
  // norm_in 32, compressor 32 x 8. norm1 8, low_dim 8 x 32, expander 32 x 32.
  ExpectEqual(Boundary("kind: ADAPTER"),
              common +
                  "projection: TRUNCATE encoder_parameters: 288 decoder_parameters: 1288 encoder_flops: 8192 "
                  "decoder_flops: 40960");
  // T and T' of 32 x 8: of both the products, of LEARNED the values too.
  ExpectEqual(Boundary("kind: ADAPTER projection: ORTHOGONAL"),
              common +
                  "projection: ORTHOGONAL encoder_parameters: 288 decoder_parameters: 1288 encoder_flops: 16384 "
                  "decoder_flops: 49152");
  ExpectEqual(Boundary("kind: ADAPTER projection: LEARNED"),
              common +
                  "projection: LEARNED encoder_parameters: 544 decoder_parameters: 1544 encoder_flops: 16384 "
                  "decoder_flops: 49152");
  // With b = 2 the inner layer has still the width's 32; with b = 16 it has 64.
  EXPECT_EQ(Boundary("kind: ADAPTER ratio: 16").decoder_parameters(), 2u + 2 * 32 + 32 * 32);
  EXPECT_EQ(Boundary("kind: ADAPTER ratio: 2").decoder_parameters(), 16u + 16 * 64 + 64 * 32);
}

TEST(SequenceBoundaryPlan, InBranchTakesTheHalvesOfTheBlocksAroundIt) {
  const ModelPlan plan = Plan("cut_point { after: 'block0' boundary { ratio: 4 kind: IN_BRANCH } }");
  // norm2 32, gate and up 32 x 128 each, down 128 x 8. decompressor 8 x 32, and attention.
  ExpectEqual(plan.boundaries[0],
              "cut_point: 'block0' after_layer: 1 kind: IN_BRANCH in_channels: 32 out_channels: 32 "
              "crossing_channels: 8 stride: 1 init { gain: 1 } input_shape: [16, 32] output_shape: [16, 32] "
              "wire { name: 'z' shape: [16, 8] activation_codec: CODEC_FP16 gradient_codec: CODEC_FP16 } "
              "projection: TRUNCATE encoder_parameters: 9248 decoder_parameters: 4384 encoder_flops: 294912 "
              "decoder_flops: 172032 "
              "decoder_block { width: 32 heads: 4 hidden: 128 rotary_base: 10000 norm_epsilon: 1e-5 }");
  EXPECT_TRUE(plan.layers[1].decoder_block().mlp_in_boundary());
  EXPECT_FALSE(plan.layers[1].decoder_block().attention_in_boundary());
  EXPECT_EQ(plan.layers[1].parameters(), 4128u);
  EXPECT_EQ(plan.layers[1].forward_flops(), 163840u);
  EXPECT_TRUE(plan.layers[2].decoder_block().attention_in_boundary());
  EXPECT_FALSE(plan.layers[2].decoder_block().mlp_in_boundary());
  EXPECT_EQ(plan.layers[2].parameters(), 12320u);
  EXPECT_FALSE(plan.layers[3].decoder_block().attention_in_boundary());
  // All that the two blocks had is in one place or the other; less goes out of down and more into attention.
  EXPECT_EQ(plan.parameters(), Plan("").parameters() - 128 * (32 - 8) + 8 * 32);
}

TEST(SequenceBoundaryPlan, ABlockBetweenTwoInBranchBoundariesHasNothingOfItsOwn) {
  const ModelPlan plan = Plan(
      "boundary { kind: IN_BRANCH ratio: 4 projection: LEARNED } cut_point { after: 'block0' } cut_point { after: "
      "'block1' }");
  const v1::LayerSpec& between = plan.layers[2];
  EXPECT_TRUE(between.decoder_block().attention_in_boundary() && between.decoder_block().mlp_in_boundary());
  EXPECT_EQ(between.parameters(), 0u);
  EXPECT_EQ(between.forward_flops(), 0u);
  ExpectEqual(plan.boundaries[1].decoder_block(),
              "width: 32 heads: 4 hidden: 128 rotary_base: 10000 norm_epsilon: 1e-5");
  EXPECT_EQ(plan.boundaries[1].encoder_parameters(), 9248u + 256);
  EXPECT_EQ(plan.boundaries[1].decoder_parameters(), 4384u + 256);
}

TEST(SequenceBoundaryPlan, LinearAndIdentityAreExact) {
  const v1::BoundarySpec linear = Boundary("kind: LINEAR init { kind: TIED_ORTHOGONAL }");
  ExpectEqual(linear,
              "cut_point: 'block0' after_layer: 1 kind: LINEAR in_channels: 32 out_channels: 32 crossing_channels: 8 "
              "stride: 1 init { kind: TIED_ORTHOGONAL gain: 1 } input_shape: [16, 32] output_shape: [16, 32] "
              "wire { name: 'z' shape: [16, 8] activation_codec: CODEC_FP16 gradient_codec: CODEC_FP16 } "
              "encoder_parameters: 256 decoder_parameters: 256 encoder_flops: 8192 decoder_flops: 8192");
  const v1::BoundarySpec identity = Boundary("kind: IDENTITY");
  EXPECT_EQ(identity.in_channels(), 32u);
  ExpectEqual(identity.wire(0), "name: 'z' shape: [16, 32] activation_codec: CODEC_FP16 gradient_codec: CODEC_FP16");
}

TEST(SequenceBoundaryPlan, BytesThatCrossAreThoseOfTheNarrowTensor) {
  EXPECT_EQ(CrossingBytes(Boundary("kind: ADAPTER")), 2u * 2 * 16 * 8);
  EXPECT_EQ(CrossingBytes(Boundary("kind: IDENTITY")), 2u * 2 * 16 * 32);
}

TEST(TopKPlan, ValuesCrossWithTheirPlaces) {
  const v1::BoundarySpec spec = Boundary("kind: TOPK");
  ExpectEqual(spec,
              "cut_point: 'block0' after_layer: 1 kind: TOPK in_channels: 32 out_channels: 32 kept: 128 "
              "input_shape: [16, 32] output_shape: [16, 32] "
              "wire { name: 'values' shape: 128 activation_codec: CODEC_FP16 gradient_codec: CODEC_FP16 } "
              "wire { name: 'indices' shape: 128 activation_codec: CODEC_RAW dtype: INT16 }");
  // Values both ways, indices one way.
  EXPECT_EQ(CrossingBytes(spec), 2u * 128 + 2 * 128 + 2 * 128);
}

TEST(TopKPlan, AnyRatioKeepsAtLeastOneValueAtEachPosition) {
  EXPECT_EQ(Boundary("kind: TOPK ratio: 7").kept(), 16u * 4);
  EXPECT_EQ(Boundary("kind: TOPK ratio: 1").kept(), 512u);
  EXPECT_EQ(Boundary("kind: TOPK ratio: 100000").kept(), 16u);
  EXPECT_EQ(ErrorOf("cut_point { after: 'block0' boundary { kind: TOPK ratio: 0 } }"),
            "cut_point[0].boundary.ratio: 0 is too small; at least 1");
}

TEST(TopKPlan, PlacesAreShortWhereTheyFit) {
  const std::string cut = "cut_point { after: 'block0' boundary { kind: TOPK } }";
  const ModelPlan fits = Plan(cut, "context: 1024"), beyond = Plan(cut, "context: 1025");
  EXPECT_EQ(fits.boundaries[0].wire(1).dtype(), v1::INT16);  // places up to 32767
  EXPECT_EQ(beyond.boundaries[0].wire(1).dtype(), v1::INT32);
  EXPECT_EQ(CrossingBytes(beyond.boundaries[0]), (2u + 2 + 4) * beyond.boundaries[0].kept());
}

TEST(SequenceBoundaryPlan, WhatDoesNotFitIsRefusedWithWhatDoes) {
  const auto after = [](const std::string& layer, const std::string& boundary) {
    return ErrorOf("cut_point { after: '" + layer + "' boundary { " + boundary + " } }");
  };
  EXPECT_EQ(after("block0", ""),
            "cut_point[0].after: a boundary of kind RESBM takes an image, but \"block0\" gives a sequence; choose "
            "boundary.kind IDENTITY, LINEAR, TOPK, IN_BRANCH or ADAPTER, or another cut point");
  EXPECT_EQ(after("embedding", "kind: IN_BRANCH"),
            "cut_point[0].after: a boundary of kind IN_BRANCH stands between two blocks, not between \"embedding\" and "
            "\"block0\"; choose boundary.kind ADAPTER there, or another cut point");
  EXPECT_EQ(after("block2", "kind: IN_BRANCH"),
            "cut_point[0].after: a boundary of kind IN_BRANCH stands between two blocks, not between \"block2\" and "
            "\"head\"; choose boundary.kind ADAPTER there, or another cut point");
  EXPECT_EQ(after("block0", "kind: ADAPTER ratio: 5"),
            "cut_point[0].boundary.ratio: 5 does not divide 32 coordinates at \"block0\"; try 4 or 8");
  EXPECT_EQ(
      after("block0", "kind: LINEAR stride: 2 out_channels: 8"),
      "cut_point[0].boundary.out_channels: a boundary of kind LINEAR keeps the 32 coordinates at \"block0\"; leave "
      "it out\n"
      "cut_point[0].boundary.stride: a boundary of kind LINEAR keeps the length; set it to 1");
  EXPECT_EQ(after("block0", "kind: ADAPTER init { kind: TIED_ORTHOGONAL }"),
            "cut_point[0].boundary.init.kind: TIED_ORTHOGONAL is not of kind ADAPTER, which starts as blocks do; leave "
            "it out");
  EXPECT_EQ(after("blok0", "kind: ADAPTER"), "cut_point[0].after: no layer \"blok0\"; did you mean \"block0\"?");
}

TEST(SequenceBoundaryPlan, CodecsDefaultToThePrecision) {
  const std::string cut = "boundary { kind: ADAPTER ratio: 4 } cut_point { after: 'block0' } ";
  const auto codecs = [&](const std::string& more) {
    const v1::WireTensor z = Plan(cut + more).boundaries[0].wire(0);
    return std::pair(z.activation_codec(), z.gradient_codec());
  };
  EXPECT_EQ(codecs(""), std::pair(v1::CODEC_FP16, v1::CODEC_FP16));
  EXPECT_EQ(codecs("precision: BF16"), std::pair(v1::CODEC_BF16, v1::CODEC_BF16));
  EXPECT_EQ(codecs("precision: BF16 wire { gradients: FP16 }"), std::pair(v1::CODEC_BF16, v1::CODEC_FP16));
  EXPECT_EQ(codecs("wire { activations: INT8 }"), std::pair(v1::CODEC_INT8, v1::CODEC_FP16));
}

TEST(RecomputePlan, EveryDecoderOrNamedLayers) {
  const std::string cuts = "boundary { kind: ADAPTER } cut_point { after: 'block0' } cut_point { after: 'block1' } ";
  const ModelPlan none = Plan(cuts), boundary = Plan(cuts + "recompute: BOUNDARY");
  const ModelPlan layers = Plan(cuts + "recompute: LAYERS recompute_layer: ['block1', 'head']");
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(none.boundaries[i].recompute());
    EXPECT_TRUE(boundary.boundaries[i].recompute());
    EXPECT_FALSE(layers.boundaries[i].recompute());
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(none.layers[i].recompute() || boundary.layers[i].recompute());
    EXPECT_EQ(layers.layers[i].recompute(), i == 2 || i == 4) << i;
  }
}

TEST(RecomputePlan, NamesMustBeThereAndAskedFor) {
  EXPECT_EQ(ErrorOf("recompute: LAYERS"), "recompute: LAYERS needs names: recompute_layer: [...]");
  EXPECT_EQ(ErrorOf("recompute: LAYERS recompute_layer: ['block0', 'bock1']"),
            "recompute_layer[1]: no layer \"bock1\"; did you mean \"block1\"?");
  EXPECT_EQ(ErrorOf("recompute: BOUNDARY recompute_layer: 'block0'"),
            "recompute_layer: is of recompute: LAYERS, not of BOUNDARY; set that, or leave the names out");
}

TEST(MakeStageSpec, TellsTheStagesOfTextWhatTheyGetAndHowTheyCount) {
  v1::Job job = JobWith(
      "seed: 77 precision: BF16 boundary { kind: ADAPTER ratio: 4 } cut_point { after: 'block0' } "
      "data { text { file: 'a' } } optimizer { adamw {} }",
      "dropout: 0.1");
  const auto model = ExpandModel(job);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto partition = PlanPartition(job, *model, 2);
  ASSERT_TRUE(partition.ok()) << partition.status();
  const std::vector<int> windows = {2, 1};
  const v1::StageSpec first = MakeStageSpec(job, *model, *partition, 0, windows);
  const v1::StageSpec last = MakeStageSpec(job, *model, *partition, 1, windows);
  for (const v1::StageSpec& spec : {first, last}) {
    EXPECT_EQ(spec.input(), v1::StageSpec::TOKENS);
    EXPECT_EQ(spec.loss(), v1::StageSpec::TOKEN_CROSS_ENTROPY);
    EXPECT_EQ(spec.precision(), v1::StageSpec::BF16);
    EXPECT_EQ(spec.seed(), 77u);
    EXPECT_EQ(spec.input_mean_size(), 0);
  }
  EXPECT_EQ(std::vector<std::int64_t>(first.input_shape().begin(), first.input_shape().end()),
            (std::vector<std::int64_t>{16}));
  EXPECT_EQ(std::vector<std::int64_t>(last.input_shape().begin(), last.input_shape().end()),
            (std::vector<std::int64_t>{16, 8}));
}

}  // namespace
}  // namespace resbm::coordinator
