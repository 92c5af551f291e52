#include "coordinator/plan/model_plan.h"

#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

ModelPlan Expand(const std::string& job) {
  auto plan = ExpandModel(Parse<v1::Job>(job));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : ModelPlan();
}

std::string ErrorOf(const std::string& job) {
  const auto plan = ExpandModel(Parse<v1::Job>(job));
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(plan.status().message());
}

template <typename Message>
void ExpectEqual(const Message& got, const std::string& expected) {
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(got, Parse<Message>(expected))) << got.DebugString();
}

constexpr char kResNet[] =
    "model { resnet { stem { channels: 32 stride: 2 } group { blocks: 2 channels: 32 } "
    "group { blocks: 2 channels: 64 stride: 2 } } } ";
constexpr char kMlp[] = "model { mlp { hidden: [128, 32] } } ";

TEST(ExpandModel, ResNetLayersAreExact) {
  const ModelPlan plan = Expand(kResNet);
  ASSERT_EQ(plan.layers.size(), 7u);
  // 9 x 1 x 32 + 2 x 32; 2 x 288 x 14 x 14.
  ExpectEqual(plan.layers[0],
              "index: 0 name: 'stem' input_shape: [1, 28, 28] output_shape: [32, 14, 14] parameters: 352 "
              "forward_flops: 112896 stem { in_channels: 1 out_channels: 32 kernel: 3 stride: 2 norm_groups: 8 }");
  // 2 x (9 x 32 x 32 + 2 x 32).
  ExpectEqual(plan.layers[1],
              "index: 1 name: 'group0.0' input_shape: [32, 14, 14] output_shape: [32, 14, 14] parameters: 18560 "
              "forward_flops: 7225344 residual_block { in_channels: 32 out_channels: 32 stride: 1 norm_groups: 8 }");
  EXPECT_EQ(plan.layers[2].name(), "group0.1");
  // 9 x 32 x 64 + 9 x 64 x 64 + 32 x 64 + 3 x 2 x 64.
  ExpectEqual(plan.layers[3],
              "index: 3 name: 'group1.0' input_shape: [32, 14, 14] output_shape: [64, 7, 7] parameters: 57728 "
              "forward_flops: 5619712 residual_block { in_channels: 32 out_channels: 64 stride: 2 norm_groups: 8 }");
  ExpectEqual(plan.layers[4],
              "index: 4 name: 'group1.1' input_shape: [64, 7, 7] output_shape: [64, 7, 7] parameters: 73984 "
              "forward_flops: 7225344 residual_block { in_channels: 64 out_channels: 64 stride: 1 norm_groups: 8 }");
  ExpectEqual(plan.layers[5], "index: 5 name: 'pool' input_shape: [64, 7, 7] output_shape: 64 global_pool {}");
  ExpectEqual(plan.layers[6],
              "index: 6 name: 'head' input_shape: 64 output_shape: 10 parameters: 650 forward_flops: 1280 "
              "linear { in_features: 64 out_features: 10 }");
  EXPECT_EQ(plan.parameters(), 352u + 2 * 18560 + 57728 + 73984 + 650);
  EXPECT_EQ(plan.forward_flops(), 112896u + 3 * 7225344 + 5619712 + 1280);
}

TEST(ExpandModel, BottleneckBlocksAreExact) {
  const ModelPlan plan =
      Expand("model { resnet { stem { stride: 2 } group { channels: 64 stride: 2 block: BOTTLENECK } } }");
  // 32 x 16 + 9 x 16 x 16 + 16 x 64 + 32 x 64 (shortcut) + 2 x (16 + 16 + 64 + 64);
  // the first convolution still sees 14 x 14.
  ExpectEqual(plan.layers[1],
              "index: 1 name: 'group0.0' input_shape: [32, 14, 14] output_shape: [64, 7, 7] parameters: 6208 "
              "forward_flops: 727552 residual_block { bottleneck: true in_channels: 32 out_channels: 64 stride: 2 "
              "norm_groups: 8 inner_norm_groups: 8 }");
}

TEST(ExpandModel, MlpLayersAreExact) {
  const ModelPlan plan = Expand(kMlp);
  ASSERT_EQ(plan.layers.size(), 4u);
  ExpectEqual(plan.layers[0], "index: 0 name: 'flatten' input_shape: [1, 28, 28] output_shape: 784 flatten {}");
  ExpectEqual(plan.layers[1],
              "index: 1 name: 'hidden0' input_shape: 784 output_shape: 128 parameters: 100480 forward_flops: 200704 "
              "linear { in_features: 784 out_features: 128 relu: true }");
  ExpectEqual(plan.layers[2],
              "index: 2 name: 'hidden1' input_shape: 128 output_shape: 32 parameters: 4128 forward_flops: 8192 "
              "linear { in_features: 128 out_features: 32 relu: true }");
  ExpectEqual(plan.layers[3],
              "index: 3 name: 'head' input_shape: 32 output_shape: 10 parameters: 330 forward_flops: 640 "
              "linear { in_features: 32 out_features: 10 }");
}

TEST(ExpandModel, OddSizesRoundUpWithStride) {
  const ModelPlan plan =
      Expand("model { resnet { input { height: 29 width: 30 } stem { stride: 2 kernel: 5 } group { stride: 3 } } }");
  EXPECT_EQ(plan.layers[0].output_shape(1), 15);
  EXPECT_EQ(plan.layers[0].output_shape(2), 15);
  EXPECT_EQ(plan.layers[0].parameters(), 25u * 32 + 64);
  EXPECT_EQ(plan.layers[1].output_shape(1), 5);
}

TEST(ExpandModel, NormGroupsDivideTheChannels) {
  const ModelPlan plan = Expand("model { resnet { norm_groups: 8 stem { channels: 30 } group { channels: 13 } } }");
  EXPECT_EQ(plan.layers[0].stem().norm_groups(), 6u);
  EXPECT_EQ(plan.layers[1].residual_block().norm_groups(), 1u);
}

TEST(ExpandModel, BoundaryIsExact) {
  const ModelPlan plan = Expand(std::string(kResNet) + "cut_point { after: 'group0.1' }");
  ASSERT_EQ(plan.boundaries.size(), 1u);
  // Encoder 32 x 2 + 2. Decoder 2 x (2 x 2) + 2 x (9 x 2 x 2 + 2) + 2 x (2 x 32 + 32).
  ExpectEqual(plan.boundaries[0],
              "cut_point: 'group0.1' after_layer: 2 kind: RESBM in_channels: 32 out_channels: 32 crossing_channels: 2 "
              "norm_groups: 2 wire { name: 'z' shape: [2, 14, 14] "
              "activation_codec: CODEC_FP16 gradient_codec: CODEC_FP16 } input_shape: [32, 14, 14] output_shape: [32, 14, 14] encoder_parameters: 66 decoder_parameters: 276 "
              "low_dim { depth: 2 width: 1 } init { gain: 1 } stride: 1 "
              "encoder_flops: 25088 decoder_flops: 78400");
  EXPECT_EQ(plan.parameters(), 352u + 2 * 18560 + 57728 + 73984 + 650 + 66 + 276);
}

TEST(ExpandModel, BoundaryInItsPublishedFormIsExact) {
  const ModelPlan plan =
      Expand("model { resnet { stem { channels: 256 } } } boundary { norm_groups: 8 } cut_point { after: 'stem' }");
  EXPECT_EQ(plan.boundaries[0].crossing_channels(), 16u);
  EXPECT_EQ(plan.boundaries[0].norm_groups(), 8u);
  EXPECT_EQ(plan.boundaries[0].encoder_parameters(), 4112u);
  EXPECT_EQ(plan.boundaries[0].decoder_parameters(), 13408u);
}

TEST(ExpandModel, BoundaryWithoutNormHasNoNormParameters) {
  const ModelPlan plan = Expand(std::string(kResNet) + "boundary { norm_groups: 0 } cut_point { after: 'group0.1' }");
  EXPECT_EQ(plan.boundaries[0].norm_groups(), 0u);
  EXPECT_EQ(plan.boundaries[0].decoder_parameters(), 268u);
}

TEST(ExpandModel, FieldsOfACutPointOverrideTheDefaults) {
  const ModelPlan plan =
      Expand(std::string(kResNet) +
             "boundary { ratio: 8 norm_groups: 1 } wire { activations: BF16 gradients: FP32 }"
             "cut_point { after: 'stem' }"
             "cut_point { after: 'group0.1' boundary { ratio: 16 } wire { gradients: FP16 } }"
             "cut_point { after: 'group1.0' boundary { kind: IDENTITY } wire { activations: FP32 } }");
  ASSERT_EQ(plan.boundaries.size(), 3u);
  EXPECT_EQ(plan.boundaries[0].crossing_channels(), 4u);
  EXPECT_EQ(plan.boundaries[0].wire(0).activation_codec(), v1::CODEC_BF16);
  EXPECT_EQ(plan.boundaries[0].wire(0).gradient_codec(), v1::CODEC_FP32);
  EXPECT_EQ(plan.boundaries[1].crossing_channels(), 2u);
  EXPECT_EQ(plan.boundaries[1].norm_groups(), 1u);
  EXPECT_EQ(plan.boundaries[1].wire(0).activation_codec(), v1::CODEC_BF16);
  EXPECT_EQ(plan.boundaries[1].wire(0).gradient_codec(), v1::CODEC_FP16);
  ExpectEqual(plan.boundaries[2],
              "cut_point: 'group1.0' after_layer: 3 kind: IDENTITY in_channels: 64 out_channels: 64 "
              "wire { name: 'z' shape: [64, 7, 7] activation_codec: CODEC_FP32 gradient_codec: CODEC_FP32 } "
              "input_shape: [64, 7, 7] output_shape: [64, 7, 7]");
}

TEST(ExpandModel, AnOverrideMayRestoreTheSchemasDefault) {
  const ModelPlan plan = Expand(std::string(kResNet) +
                                "boundary { kind: IDENTITY } cut_point { after: 'group0.1' boundary { kind: RESBM } }");
  EXPECT_EQ(plan.boundaries[0].kind(), v1::BoundarySpec::RESBM);
}

TEST(ExpandModel, IdentityStandsAnywhere) {
  const ModelPlan plan = Expand(
      std::string(kMlp) + "boundary { kind: IDENTITY } cut_point { after: 'flatten' } cut_point { after: 'hidden1' }");
  ASSERT_EQ(plan.boundaries.size(), 2u);
  EXPECT_EQ(plan.boundaries[1].in_channels(), 32u);
  EXPECT_EQ(std::vector<std::int64_t>(plan.boundaries[1].wire(0).shape().begin(), plan.boundaries[1].wire(0).shape().end()),
            std::vector<std::int64_t>{32});
}

TEST(ExpandModel, ResbmNeedsHeightAndWidth) {
  EXPECT_EQ(ErrorOf(std::string(kMlp) + "cut_point { after: 'hidden0' }"),
            "cut_point[0].after: a boundary of kind RESBM takes an image, but \"hidden0\" gives single values; choose "
            "boundary.kind IDENTITY or TOPK, or another cut point");
  EXPECT_EQ(ErrorOf(std::string(kResNet) + "boundary { kind: LINEAR } cut_point { after: 'pool' }"),
            "cut_point[0].after: a boundary of kind LINEAR takes a sequence or an image, but \"pool\" gives single "
            "values; choose boundary.kind IDENTITY or TOPK, or another cut point");
}

TEST(ExpandModel, BoundariesOfSequencesDoNotFitImages) {
  for (const std::string kind : {"ADAPTER", "IN_BRANCH"}) {
    EXPECT_EQ(ErrorOf(std::string(kResNet) + "boundary { kind: " + kind + " } cut_point { after: 'stem' }"),
              "cut_point[0].after: a boundary of kind " + kind + " takes a sequence, but \"stem\" gives an image; choose "
              "boundary.kind RESBM, IDENTITY, LINEAR, TOPK, BOTTLENECK or IDENTITY_BLOCK, or another cut point");
  }
}

TEST(ExpandModel, TopKStandsAnywhere) {
  const ModelPlan images = Expand(std::string(kResNet) + "boundary { kind: TOPK ratio: 16 } cut_point { after: 'stem' }");
  EXPECT_EQ(images.boundaries[0].kept(), 32u * 14 * 14 / 16);
  EXPECT_EQ(images.boundaries[0].output_shape_size(), 3);
  const ModelPlan values = Expand(std::string(kMlp) + "boundary { kind: TOPK ratio: 3 } cut_point { after: 'hidden0' }");
  EXPECT_EQ(values.boundaries[0].kept(), 42u);
  EXPECT_EQ(ErrorOf(std::string(kResNet) + "boundary { kind: TOPK stride: 2 } cut_point { after: 'stem' }"),
            "boundary.stride: a boundary of kind TOPK keeps height and width; set it to 1");
}

TEST(ExpandModel, RatioDividesTheChannels) {
  const std::string cut = std::string(kResNet) + "cut_point { after: 'group0.1' }";
  for (const int ratio : {1, 2, 4, 8, 16, 32}) {
    EXPECT_EQ(Expand(cut + "boundary { ratio: " + std::to_string(ratio) + " }").boundaries[0].crossing_channels(),
              32u / ratio);
  }
  EXPECT_EQ(ErrorOf(cut + "boundary { ratio: 24 }"),
            "boundary.ratio: 24 does not divide 32 channels at \"group0.1\"; try 16 or 32");
  EXPECT_EQ(ErrorOf(cut + "boundary { ratio: 64 }"),
            "boundary.ratio: 64 does not divide 32 channels at \"group0.1\"; try 32");
  EXPECT_EQ(ErrorOf(cut + "boundary { ratio: 0 }"),
            "boundary.ratio: 0 does not divide 32 channels at \"group0.1\"; try 1");
  EXPECT_EQ(ErrorOf(cut + "boundary { ratio: -4 }"),
            "boundary.ratio: -4 does not divide 32 channels at \"group0.1\"; try 1");
}

TEST(ExpandModel, GivenNormGroupsDivideWhatCrosses) {
  const std::string cut = std::string(kResNet) + "cut_point { after: 'group0.1' boundary { ratio: 4 } }";
  EXPECT_EQ(Expand(cut + "boundary { norm_groups: 4 }").boundaries[0].norm_groups(), 4u);
  EXPECT_EQ(
      ErrorOf(cut + "boundary { norm_groups: 3 }"),
      "boundary.norm_groups: 3 does not divide the 8 channels that cross at \"group0.1\"; try 2 or 4, or 0 for no "
      "norm");
  EXPECT_EQ(ErrorOf(cut + "boundary { norm_groups: -1 }"),
            "boundary.norm_groups: -1 does not divide the 8 channels that cross at \"group0.1\"; try 1, or 0 for no "
            "norm");
}

TEST(ExpandModel, GroupsOfOneValueAreRefused) {
  EXPECT_EQ(ErrorOf("model { resnet { input { height: 2 width: 2 } stem { channels: 8 stride: 2 } } }"),
            "model.resnet.stem: leaves GroupNorm groups of one value at \"stem\" (8 channels of 1x1); use fewer "
            "norm_groups or less stride");
  EXPECT_EQ(ErrorOf("model { resnet { input { height: 2 width: 2 } stem { channels: 16 stride: 2 } } } "
                    "boundary { ratio: 4 norm_groups: 4 } cut_point { after: 'stem' }"),
            "boundary.norm_groups: 4 leaves groups of one value at \"stem\"; try fewer, or 0 for no norm");
}

TEST(ExpandModel, CutPointsNameLayersInOrder) {
  const std::string model = kResNet;
  EXPECT_EQ(ErrorOf(model + "cut_point { after: 'group0.2' }"),
            "cut_point[0].after: no layer \"group0.2\"; did you mean \"group0.0\"?");
  EXPECT_EQ(ErrorOf(model + "cut_point {}"),
            "cut_point[0].after: names no layer; known: stem, group0.0, group0.1, group1.0, group1.1, pool");
  EXPECT_EQ(ErrorOf(model + "cut_point { after: 'head' }"),
            "cut_point[0].after: nothing comes after the last layer, \"head\"; cut before it");
  EXPECT_EQ(ErrorOf(model + "cut_point { after: 'stem' } cut_point { after: 'stem' }"),
            "cut_point[1].after: \"stem\" is a cut point already (cut_point[0])");
  EXPECT_EQ(ErrorOf(model + "cut_point { after: 'group1.0' } cut_point { after: 'stem' }"),
            "cut_point[1].after: \"stem\" comes before \"group1.0\" in the model; list cut points in the order of the "
            "layers");
}

TEST(ExpandModel, SizesAreInRange) {
  EXPECT_EQ(ErrorOf("model { resnet { classes: 0 stem { channels: -1 kernel: 4 } group { blocks: 0 stride: 99 } } }"),
            "model.resnet.classes: 0 is too small; at least 1\n"
            "model.resnet.stem.channels: -1 is too small; at least 1\n"
            "model.resnet.stem.kernel: 4 is even; kernels are odd, so that the padding is the same on both sides\n"
            "model.resnet.group[0].blocks: 0 is too small; at least 1\n"
            "model.resnet.group[0].stride: 99 is too large; at most 16");
  EXPECT_EQ(ErrorOf("model { resnet { group { channels: 30 block: BOTTLENECK } } }"),
            "model.resnet.group[0].channels: 30 channels: BOTTLENECK blocks need a multiple of 4");
  EXPECT_EQ(ErrorOf("model { mlp { input { height: 2000 } hidden: [0] } }"),
            "model.mlp.input.height: 2000 is too large; at most 1024\n"
            "model.mlp.hidden[0]: 0 is too small; at least 1");
  EXPECT_EQ(ErrorOf("model { mlp { input { channels: 8000 height: 1000 width: 1000 } } }"),
            "model.mlp.input: an image of 8000000000 values is too large; at most 16777216");
}

TEST(ExpandModel, HugeModelsAreRefusedBeforeTheyAreBuilt) {
  EXPECT_EQ(ErrorOf("model { resnet { group { blocks: 600 } group { blocks: 600 } } }"),
            "model.resnet.group: 1203 layers are too many; at most 1000");
  EXPECT_EQ(ErrorOf("model { resnet { group { blocks: 2000000000 } } }"),
            "model.resnet.group[0].blocks: 2000000000 is too large; at most 1000");
}

TEST(ExpandModel, AModelMustBeChosen) {
  EXPECT_EQ(ErrorOf(""), "model: says no kind of model; choose resnet {}, mlp {} or transformer {}");
}

TEST(LowDimNormGroups, KeepsEightValuesInAGroup) {
  EXPECT_EQ(LowDimNormGroups(16, 14, 14), 8);
  EXPECT_EQ(LowDimNormGroups(12, 14, 14), 6);
  EXPECT_EQ(LowDimNormGroups(13, 14, 14), 1);
  EXPECT_EQ(LowDimNormGroups(2, 14, 14), 2);
  EXPECT_EQ(LowDimNormGroups(1, 4, 2), 1);
  EXPECT_EQ(LowDimNormGroups(8, 2, 2), 4);
  EXPECT_EQ(LowDimNormGroups(16, 1, 1), 2);
  EXPECT_EQ(LowDimNormGroups(8, 1, 1), 1);
  EXPECT_EQ(LowDimNormGroups(4, 1, 1), 0);
  EXPECT_EQ(LowDimNormGroups(1, 7, 1), 0);
}

TEST(LargestDivisor, IsAtMostTheLimit) {
  EXPECT_EQ(LargestDivisor(32, 8), 8);
  EXPECT_EQ(LargestDivisor(30, 8), 6);
  EXPECT_EQ(LargestDivisor(4, 8), 4);
  EXPECT_EQ(LargestDivisor(7, 6), 1);
}

TEST(ExpandModel, BatchNormHasTheParametersOfGroupNormAndNoGroups) {
  const ModelPlan groups = Expand(kResNet);
  const ModelPlan batch = Expand(
      "model { resnet { norm: BATCH_NORM stem { channels: 32 stride: 2 } group { blocks: 2 channels: 32 } "
      "group { blocks: 2 channels: 64 stride: 2 } } } ");
  ASSERT_EQ(batch.layers.size(), groups.layers.size());
  EXPECT_TRUE(batch.layers[0].stem().batch_norm());
  EXPECT_EQ(batch.layers[0].stem().norm_groups(), 0u);
  EXPECT_TRUE(batch.layers[1].residual_block().batch_norm());
  EXPECT_EQ(batch.layers[1].residual_block().norm_groups(), 0u);
  EXPECT_EQ(batch.parameters(), groups.parameters());
}

constexpr char kResbmGroup[] =
    "model { resnet { stem { channels: 32 stride: 2 } group { channels: 32 } "
    "group { blocks: 2 channels: 64 stride: 2 block: RESBM resbm { ratio: 4 shortcut: PROJECTED } } } } ";

TEST(ExpandModel, AResbmBlockIsALayerOfItsGroup) {
  const ModelPlan plan = Expand(kResbmGroup);
  const v1::LayerSpec& first = plan.layers[2];
  EXPECT_EQ(first.name(), "group1.0");
  EXPECT_EQ(first.resbm().kind(), v1::BoundarySpec::RESBM);
  EXPECT_EQ(first.resbm().shortcut(), v1::BoundarySpec::PROJECTED);
  EXPECT_EQ(first.resbm().in_channels(), 32u);
  EXPECT_EQ(first.resbm().out_channels(), 64u);
  EXPECT_EQ(first.resbm().crossing_channels(), 8u);
  EXPECT_EQ(first.resbm().stride(), 2u);
  EXPECT_TRUE(first.resbm().wire().empty());
  EXPECT_EQ(first.output_shape(0), 64);
  EXPECT_EQ(first.output_shape(1), 7);
  // compressor 32 x 8 + 8, two norms 2 x 8 and 3x3 convolutions 9 x 8 x 8 + 8, expander 8 x 64 + 64, shortcut
  // 32 x 64 + 64.
  EXPECT_EQ(first.parameters(), 264u + 2 * (16 + 584) + 576 + 2112);
  // In the second block, of 64 channels, the stride is 1.
  EXPECT_EQ(plan.layers[3].resbm().stride(), 1u);
  EXPECT_EQ(plan.layers[3].resbm().in_channels(), 64u);
}

TEST(ExpandModel, ResbmBlocksSayWhichFieldIsWrong) {
  EXPECT_THAT(ErrorOf("model { resnet { stem { channels: 32 } group { channels: 32 block: RESBM resbm { ratio: 5 } } } }"),
              ::testing::HasSubstr("model.resnet.group[0].resbm.ratio: 5 does not divide 32 channels"));
  EXPECT_THAT(ErrorOf("model { resnet { stem { channels: 32 } "
                      "group { channels: 64 block: RESBM resbm { ratio: 4 shortcut: DIRECT } } } }"),
              ::testing::HasSubstr("model.resnet.group[0].resbm.shortcut: DIRECT needs as many channels"));
  EXPECT_THAT(ErrorOf(std::string(kMlp) + "boundary { shortcut: DIRECT } cut_point { after: 'flatten' }"),
              ::testing::HasSubstr("boundary.shortcut: DIRECT is of blocks within a stage"));
}

}  // namespace
}  // namespace resbm::coordinator
