// The kinds and options of boundaries: exact parameters, FLOPs and shapes.
#include <string>
#include <vector>

#include "coordinator/plan/model_plan.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

// 16 channels of 12x12 after the stem; ratio 4, so 4 cross.
v1::Job JobWith(const std::string& boundary) {
  v1::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "model { resnet { input { height: 12 width: 12 } stem { channels: 16 } group { channels: 16 } } } "
      "cut_point { after: 'stem' boundary { ratio: 4 norm_groups: 2 } } boundary { " + boundary + " }",
      &job))
      << boundary;
  return job;
}

ModelPlan Plan(const std::string& boundary) {
  auto plan = ExpandModel(JobWith(boundary));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() && plan->boundaries.size() == 1 ? *std::move(plan) : ModelPlan{{{}, {}}, {{}}};
}

v1::BoundarySpec Boundary(const std::string& boundary) { return Plan(boundary).boundaries[0]; }

std::string ErrorOf(const std::string& boundary) {
  const auto plan = ExpandModel(JobWith(boundary));
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << boundary;
  return std::string(plan.status().message());
}

struct Sizes {
  std::uint64_t encoder_parameters, decoder_parameters, encoder_flops, decoder_flops;
  friend bool operator==(const Sizes&, const Sizes&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Sizes& s) {
    return out << s.encoder_parameters << " " << s.decoder_parameters << " " << s.encoder_flops << " "
               << s.decoder_flops;
  }
};

Sizes SizesOf(const std::string& boundary) {
  const v1::BoundarySpec spec = Boundary(boundary);
  return {spec.encoder_parameters(), spec.decoder_parameters(), spec.encoder_flops(), spec.decoder_flops()};
}

std::vector<std::int64_t> Shape(const google::protobuf::RepeatedField<std::int64_t>& dims) {
  return {dims.begin(), dims.end()};
}

// tests/model/boundary_variants_test.cc has the same numbers of parameters for the same boundaries. With C = 16,
// z = 4, 144 pixels: compressor 68 values and 18432 FLOPs, a 3x3 convolution 148 and 41472, a norm 8, an expander 80
// and 18432.
TEST(BoundaryPlan, CountsEveryVariantExactly) {
  EXPECT_EQ(SizesOf(""), (Sizes{68, 472, 18432, 119808}));
  EXPECT_EQ(SizesOf("shortcut: NONE"), (Sizes{68, 392, 18432, 101376}));
  EXPECT_EQ(SizesOf("shortcut: TRANSMIT"), (Sizes{136, 472, 36864, 119808}));
  EXPECT_EQ(SizesOf("low_dim { depth: 1 }"), (Sizes{68, 316, 18432, 78336}));
  // 3x3 convolutions 4 -> 8 -> 8 -> 4.
  EXPECT_EQ(SizesOf("low_dim { depth: 3 width: 2 }"), (Sizes{68, 1372, 18432, 36864 + 2 * 82944 + 165888}));
  EXPECT_EQ(SizesOf("low_dim { order: CONV_CONV_NORM }"), (Sizes{68, 464, 18432, 119808}));
  // fc1 4 -> 1, fc2 1 -> 4, on one pixel.
  EXPECT_EQ(SizesOf("low_dim { attention: SQUEEZE_EXCITE }"), (Sizes{68, 485, 18432, 119808 + 16}));
  // Four convolutions 4 -> 4; 144 x 144 scores of 4 products, and as many to read.
  EXPECT_EQ(SizesOf("low_dim { attention: SELF_ATTENTION }"),
            (Sizes{68, 552, 18432, 119808 + 4 * 4608 + 2 * 165888}));
  EXPECT_EQ(SizesOf("out_channels: 24"), (Sizes{68, 552, 18432, 82944 + 2 * 27648}));
  EXPECT_EQ(SizesOf("kind: LINEAR"), (Sizes{68, 80, 18432, 18432}));
  EXPECT_EQ(SizesOf("kind: IDENTITY_BLOCK"), (Sizes{0, 540, 0, 18432 + 119808}));
  EXPECT_EQ(SizesOf("kind: BOTTLENECK"), (Sizes{72, 248, 18432, 41472 + 18432}));
}

TEST(BoundaryPlan, ResolvesEveryFieldForTheStage) {
  const v1::BoundarySpec spec = Boundary(
      "shortcut: TRANSMIT out_channels: 24 stride: 2 init { kind: KAIMING_FAN_IN gain: 0.5 } "
      "low_dim { depth: 3 width: 2 attention: SELF_ATTENTION order: CONV_CONV_NORM }");
  v1::BoundarySpec expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "cut_point: 'stem' kind: RESBM in_channels: 16 out_channels: 24 crossing_channels: 4 norm_groups: 2 "
      "wire { name: 'z' activation_codec: CODEC_FP16 gradient_codec: CODEC_FP16 shape: [8, 6, 6] } "
      "input_shape: [16, 12, 12] "
      "output_shape: [24, 6, 6] shortcut: TRANSMIT stride: 2 init { kind: KAIMING_FAN_IN gain: 0.5 } "
      "low_dim { depth: 3 width: 2 attention: SELF_ATTENTION order: CONV_CONV_NORM } "
      "encoder_parameters: 136 decoder_parameters: 1500 encoder_flops: 9216 decoder_flops: 122112",
      &expected));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(spec, expected)) << spec.DebugString();
}

TEST(BoundaryPlan, LayersAfterABoundaryTakeWhatItLeaves) {
  const ModelPlan plan = Plan("out_channels: 24 stride: 2");
  EXPECT_EQ(Shape(plan.boundaries[0].wire(0).shape()), (std::vector<std::int64_t>{4, 6, 6}));
  EXPECT_EQ(Shape(plan.layers[0].output_shape()), (std::vector<std::int64_t>{16, 12, 12}));
  EXPECT_EQ(Shape(plan.layers[1].input_shape()), (std::vector<std::int64_t>{24, 6, 6}));
  EXPECT_EQ(Shape(plan.layers[1].output_shape()), (std::vector<std::int64_t>{16, 6, 6}));
  EXPECT_EQ(plan.layers[1].residual_block().in_channels(), 24u);
}

TEST(BoundaryPlan, OfAnIdentityBlockTheWholeActivationCrosses) {
  const v1::BoundarySpec spec = Boundary("kind: IDENTITY_BLOCK");
  EXPECT_EQ(Shape(spec.wire(0).shape()), (std::vector<std::int64_t>{16, 12, 12}));
  EXPECT_EQ(spec.crossing_channels(), 0u);
  EXPECT_EQ(spec.block_channels(), 4u);
}

TEST(BoundaryPlan, ABottleneckTakesAQuarterUnlessARatioIsSet) {
  v1::Job job = JobWith("kind: BOTTLENECK");
  job.mutable_cut_point(0)->clear_boundary();
  auto plan = ExpandModel(job);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->boundaries[0].crossing_channels(), 4u);
  EXPECT_EQ(plan->boundaries[0].norm_groups(), 4u);
  EXPECT_EQ(plan->boundaries[0].output_norm_groups(), 8u);
  job.mutable_boundary()->set_ratio(8);
  EXPECT_EQ(ExpandModel(job)->boundaries[0].crossing_channels(), 2u);
}

TEST(BoundaryPlan, RefusesWhatDoesNotFit) {
  EXPECT_EQ(ErrorOf("low_dim { depth: 0 width: 0 }"),
            "boundary.low_dim.depth: 0 is too small; at least 1\n"
            "boundary.low_dim.width: 0 is too small; at least 1");
  EXPECT_EQ(ErrorOf("low_dim { width: 2 depth: 1 }"),
            "boundary.low_dim.width: 2 needs a second convolution to narrow again; set low_dim.depth to 2");
  EXPECT_EQ(ErrorOf("low_dim { width: 4096 }"),
            "boundary.low_dim.width: 4096 makes 16384 channels of the 4 at \"stem\"; at most 8192");
  EXPECT_EQ(ErrorOf("stride: 0"), "boundary.stride: 0 is too small; at least 1");
  EXPECT_EQ(ErrorOf("out_channels: 10000"), "boundary.out_channels: 10000 is too large; at most 8192");
  EXPECT_EQ(ErrorOf("kind: IDENTITY stride: 2"),
            "boundary.stride: a boundary of kind IDENTITY keeps height and width; set it to 1");
  EXPECT_EQ(ErrorOf("kind: IDENTITY_BLOCK out_channels: 8"),
            "boundary.out_channels: a boundary of kind IDENTITY_BLOCK keeps the 16 channels at \"stem\"; leave it out");
  EXPECT_EQ(ErrorOf("init { gain: 0 }"), "boundary.init.gain: 0 is out of range; it must be above 0");
  EXPECT_EQ(ErrorOf("init { kind: TIED_ORTHOGONAL } out_channels: 8"),
            "boundary.init.kind: TIED_ORTHOGONAL needs as many channels after the boundary as before it, not 8 and 16 "
            "as at \"stem\"");
  EXPECT_EQ(ErrorOf("init { kind: TIED_ORTHOGONAL } kind: BOTTLENECK"),
            "boundary.init.kind: TIED_ORTHOGONAL ties a compressor and an expander, BOTTLENECK has neither; choose "
            "KAIMING_FAN_OUT or KAIMING_FAN_IN");
}

TEST(BoundaryPlan, AnErrorNamesTheCutPointWhoseFieldItIs) {
  v1::Job job = JobWith("");
  job.mutable_cut_point(0)->mutable_boundary()->mutable_low_dim()->set_depth(-1);
  EXPECT_EQ(std::string(ExpandModel(job).status().message()),
            "cut_point[0].boundary.low_dim.depth: -1 is too small; at least 1");
}

}  // namespace
}  // namespace resbm::coordinator
