// Every kind of boundary: the first law, the names and numbers of its parameters, how they start, what is refused.
#include "tests/model/support/boundary_variants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "model/stage_model.h"
#include "tests/model/support/pipeline.h"

namespace resbm::model {
namespace {

std::map<std::string, std::string> Train(const WholeModel& model, const std::vector<int>& cuts, Order order) {
  Pipeline pipeline(model, cuts);
  pipeline.Initialise(11);
  for (int step = 0; step < 2; ++step) {
    const StepResult result = pipeline.Compute(MakeBatch(model, 8, 3, static_cast<std::uint32_t>(step)), order);
    EXPECT_TRUE(result.non_finite.empty());
    pipeline.Apply(result, /*clip_norm=*/0.5, 0.05);
  }
  return pipeline.Weights();
}

BoundaryVariant Variant(const std::string& name) {
  for (const BoundaryVariant& variant : BoundaryVariants()) {
    if (variant.name == name) return variant;
  }
  ADD_FAILURE() << "no variant " << name;
  return {};
}

class EveryBoundary : public testing::TestWithParam<BoundaryVariant> {};

TEST_P(EveryBoundary, KeepsTheFirstLawWithClipping) {
  const WholeModel model = VariantResnet(GetParam(), WireCodec::kFp16, WireCodec::kFp16);
  const auto expected = Train(model, {}, Order::kGpipe);
  ASSERT_FALSE(expected.empty());
  for (const std::vector<int>& cuts : {std::vector<int>{1}, {0, 2}, {0, 1, 2}}) {
    EXPECT_TRUE(Train(model, cuts, Order::kOneFOneB) == expected) << cuts.size() + 1 << " stages";
  }
}

TEST_P(EveryBoundary, KeepsTheFirstLawInBf16) {
  WholeModel model = VariantResnet(GetParam(), WireCodec::kBf16, WireCodec::kBf16);
  const auto fp32 = Train(model, {}, Order::kGpipe);
  model.precision = Precision::kBf16;
  const auto expected = Train(model, {}, Order::kGpipe);
  EXPECT_FALSE(expected == fp32);
  for (const std::vector<int>& cuts : {std::vector<int>{1}, {0, 2}, {0, 1, 2}}) {
    EXPECT_TRUE(Train(model, cuts, Order::kOneFOneB) == expected) << cuts.size() + 1 << " stages";
  }
}

class EveryCodec : public testing::TestWithParam<std::pair<WireCodec, WireCodec>> {};

TEST_P(EveryCodec, KeepsTheFirstLawWithClipping) {
  const auto& [activations, gradients] = GetParam();
  const WholeModel model = VariantResnet(Variant("published"), activations, gradients);
  const auto expected = Train(model, {}, Order::kGpipe);
  ASSERT_FALSE(expected.empty());
  for (const std::vector<int>& cuts : {std::vector<int>{1}, {0, 2}, {0, 1, 2}}) {
    EXPECT_TRUE(Train(model, cuts, Order::kOneFOneB) == expected) << cuts.size() + 1 << " stages";
  }
  // The codec is applied though nothing is cut.
  EXPECT_FALSE(Train(VariantResnet(Variant("published"), WireCodec::kFp32, WireCodec::kFp32), {}, Order::kGpipe) ==
               expected);
}

INSTANTIATE_TEST_SUITE_P(Blockwise, EveryCodec,
                         testing::Values(std::pair(WireCodec::kInt8, WireCodec::kInt8),
                                         std::pair(WireCodec::kInt4, WireCodec::kFp16),
                                         std::pair(WireCodec::kBf16, WireCodec::kInt4)));

TEST_P(EveryBoundary, GivesEveryParameterAGradient) {
  const WholeModel model = VariantResnet(GetParam(), WireCodec::kFp32, WireCodec::kFp32);
  Pipeline pipeline(model, {1});
  pipeline.Initialise(11);
  pipeline.Compute(MakeBatch(model, 8, 2, 1), Order::kGpipe);
  for (const auto& [name, bytes] : pipeline.Gradients()) {
    double largest = 0;
    for (const float value : Floats(bytes)) largest = std::max(largest, std::abs(double{value}));
    // A constant added to every score of a softmax changes nothing.
    if (absl::StrContains(name, "attention.key.bias")) {
      EXPECT_LT(largest, 1e-5) << name;
    } else {
      EXPECT_GT(largest, 0) << name;
    }
  }
}

std::string NameOf(const testing::TestParamInfo<BoundaryVariant>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Variants, EveryBoundary, testing::ValuesIn(BoundaryVariants()), NameOf);

// Of the boundary after "stem": local names in order.
std::vector<std::string> NamesOf(const std::string& variant) {
  const std::string prefix = "boundaries.stem.";
  std::vector<std::string> names;
  for (const std::string& name :
       Pipeline(VariantResnet(Variant(variant), WireCodec::kFp32, WireCodec::kFp32), {}).ParameterNames()) {
    if (absl::StartsWith(name, prefix)) names.push_back(name.substr(prefix.size()));
  }
  return names;
}

TEST(BoundaryNames, FollowTheOrderOfThePath) {
  EXPECT_EQ(NamesOf("conv_conv_norm"),
            (std::vector<std::string>{"compressor.weight", "compressor.bias", "low_dim_conv1.weight",
                                      "low_dim_conv1.bias", "low_dim_conv2.weight", "low_dim_conv2.bias",
                                      "norm1.weight", "norm1.bias", "expander.weight", "expander.bias",
                                      "shortcut_recon.weight", "shortcut_recon.bias"}));
  EXPECT_EQ(NamesOf("depth_1"),
            (std::vector<std::string>{"compressor.weight", "compressor.bias", "norm1.weight", "norm1.bias",
                                      "low_dim_conv1.weight", "low_dim_conv1.bias", "expander.weight",
                                      "expander.bias", "shortcut_recon.weight", "shortcut_recon.bias"}));
  EXPECT_EQ(NamesOf("linear"), (std::vector<std::string>{"compressor.weight", "compressor.bias", "expander.weight",
                                                         "expander.bias"}));
  EXPECT_EQ(NamesOf("bottleneck"),
            (std::vector<std::string>{"conv1.weight", "norm1.weight", "norm1.bias", "conv2.weight", "norm2.weight",
                                      "norm2.bias", "conv3.weight", "norm3.weight", "norm3.bias"}));
  EXPECT_EQ(NamesOf("transmit")[2], "shortcut_conv.weight");
  EXPECT_EQ(NamesOf("identity_block"), NamesOf("published"));
}

// Values of the boundary after "stem", 16 channels, 4 of them in the low dimension.
std::uint64_t SizeOfVariant(const std::string& name) {
  std::uint64_t size = 0;
  Pipeline pipeline(VariantResnet(Variant(name), WireCodec::kFp32, WireCodec::kFp32), {});
  for (const ParameterInfo& info : pipeline.stages()[0]->parameters()) {
    if (absl::StartsWith(info.name, "boundaries.stem.")) size += info.size;
  }
  return size;
}

// tests/coordinator/plan/model_plan_boundary_test.cc has the same numbers for the same boundaries.
TEST(BoundarySizes, AreThoseThatTheCoordinatorPlans) {
  EXPECT_EQ(SizeOfVariant("published"), 540u);
  EXPECT_EQ(SizeOfVariant("no_shortcut"), 460u);
  EXPECT_EQ(SizeOfVariant("transmit"), 608u);
  EXPECT_EQ(SizeOfVariant("depth_1"), 384u);
  EXPECT_EQ(SizeOfVariant("depth_3_width_2"), 1440u);
  EXPECT_EQ(SizeOfVariant("conv_conv_norm"), 532u);
  EXPECT_EQ(SizeOfVariant("squeeze_excite"), 553u);
  EXPECT_EQ(SizeOfVariant("self_attention"), 620u);
  EXPECT_EQ(SizeOfVariant("out_channels"), 620u);
  EXPECT_EQ(SizeOfVariant("linear"), 148u);
  EXPECT_EQ(SizeOfVariant("identity_block"), 540u);
  EXPECT_EQ(SizeOfVariant("bottleneck"), 320u);
}

std::vector<float> StartOf(const std::string& variant, const std::string& parameter) {
  Pipeline pipeline(VariantResnet(Variant(variant), WireCodec::kFp32, WireCodec::kFp32), {0});
  pipeline.Initialise(7);
  return Floats(pipeline.Weights().at("boundaries.stem." + parameter));
}

double DeviationOf(const std::vector<float>& values) {
  double square = 0;
  for (const float value : values) square += double{value} * value;
  return std::sqrt(square / static_cast<double>(values.size()));
}

TEST(BoundaryStarts, TiedOrthogonalHalvesAreEachOthersTransposeThoughTheyLiveApart) {
  const std::vector<float> down = StartOf("tied_orthogonal", "compressor.weight");  // [4, 16]
  const std::vector<float> up = StartOf("tied_orthogonal", "expander.weight");      // [16, 4]
  ASSERT_EQ(down.size(), 64u);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      double product = 0;
      for (int k = 0; k < 16; ++k) product += double{down[i * 16 + k]} * down[j * 16 + k];
      EXPECT_NEAR(product, i == j ? 1 : 0, 1e-6) << i << ", " << j;
    }
    for (int k = 0; k < 16; ++k) EXPECT_EQ(up[k * 4 + i], down[i * 16 + k]);
  }
  EXPECT_EQ(StartOf("tied_orthogonal", "shortcut_recon.weight"), up);
}

TEST(BoundaryStarts, FanInAndGainSetTheDeviation) {
  // 4 x 4 x 3 x 3 values before an activation: gain sqrt 2, fan 36 both ways; half of it by init_gain.
  const double fan_out = DeviationOf(StartOf("published", "low_dim_conv1.weight"));
  EXPECT_NEAR(fan_out, std::sqrt(2.0 / 36), 0.2 * std::sqrt(2.0 / 36));
  EXPECT_NEAR(DeviationOf(StartOf("fan_in", "low_dim_conv1.weight")), 0.5 * fan_out, 1e-6);
  // 16 x 4 values: fan_out 16, fan_in 4.
  const double expander = DeviationOf(StartOf("published", "expander.weight"));
  EXPECT_NEAR(expander, 0.25, 0.08);
  EXPECT_NEAR(DeviationOf(StartOf("fan_in", "expander.weight")), 0.5 * 2 * expander, 1e-6);
}

TEST(BoundaryStarts, ThePublishedBlockDoesNotDependOnTheOtherFields) {
  const std::vector<float> start = StartOf("published", "low_dim_conv2.weight");
  EXPECT_EQ(StartOf("no_shortcut", "low_dim_conv2.weight"), start);
  EXPECT_EQ(StartOf("identity_block", "low_dim_conv2.weight"), start);
}

void ExpectRefused(BoundarySpec spec, int ratio, const std::string& says) {
  spec.norm_groups = 1;
  WholeModel model = ModelBuilder({1, 12, 12}).Stem(16, 1, 4).With(spec, ratio).Pool().Dense("head", 5, false).Build();
  const auto stage = StageModel::Create(Cut(model, {})[0], ComputeOptions());
  EXPECT_EQ(stage.status().code(), absl::StatusCode::kInvalidArgument) << says;
  EXPECT_TRUE(absl::StrContains(stage.status().message(), "boundary \"stem\"")) << stage.status();
  EXPECT_TRUE(absl::StrContains(stage.status().message(), says)) << stage.status();
}

TEST(BoundaryRefusals, NameTheField) {
  BoundarySpec spec;
  spec.low_dim.depth = 0;
  ExpectRefused(spec, 4, "low_dim.depth is 0");
  spec.low_dim.depth = 1 << 20;
  ExpectRefused(spec, 4, "low_dim.depth 1048576");
  spec.low_dim = {};
  spec.low_dim.width = 1 << 23;
  ExpectRefused(spec, 4, "low_dim.width times C/r");
  spec.low_dim.width = 2;
  spec.low_dim.depth = 1;
  ExpectRefused(spec, 4, "needs a depth of 2");
  spec = {};
  spec.init_gain = 0;
  ExpectRefused(spec, 4, "init_gain is 0");
  spec = {};
  spec.init = BoundaryInit::kTiedOrthogonal;
  spec.out_channels = 8;
  ExpectRefused(spec, 4, "tied-orthogonal");
  spec = {};
  spec.kind = BoundaryKind::kBottleneck;
  spec.init = BoundaryInit::kTiedOrthogonal;
  ExpectRefused(spec, 4, "BOTTLENECK has neither");
  spec = {};
  spec.kind = BoundaryKind::kIdentityBlock;
  spec.out_channels = 8;
  ExpectRefused(spec, 4, "keeps channels and size");
}

}  // namespace
}  // namespace resbm::model
