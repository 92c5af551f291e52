// Language models: names and starts of their parameters, causality, projections, what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/stage_model.h"
#include "tests/model/support/gpt.h"
#include "tests/model/support/pipeline.h"

namespace resbm::model {
namespace {

WholeModel Gpt(BoundaryKind kind, Projection projection) {
  GptOptions options;
  options.kind = kind;
  options.projection = projection;
  options.codec = WireCodec::kFp32;
  return SmallGpt(options);
}

std::vector<std::string> NamesUnder(const WholeModel& model, const std::vector<std::string>& prefixes) {
  std::vector<std::string> names;
  for (const std::string& name : Pipeline(model, {}).ParameterNames()) {
    for (const std::string& prefix : prefixes) {
      if (absl::StartsWith(name, prefix)) names.push_back(name);
    }
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(TransformerNames, AreThoseOfPyTorchModules) {
  const WholeModel model = Gpt(BoundaryKind::kIdentity, Projection::kTruncate);
  EXPECT_EQ(NamesUnder(model, {"embedding", "block1", "head"}),
            (Names{"embedding.weight", "block1.norm1.weight", "block1.attention.qkv.weight",
                   "block1.attention.out.weight", "block1.norm2.weight", "block1.mlp.gate.weight",
                   "block1.mlp.up.weight", "block1.mlp.down.weight", "head.weight", "head.norm.weight"}));
}

TEST(TransformerNames, InBranchMovesHalvesOfTheBlocksIntoTheBoundary) {
  const WholeModel model = Gpt(BoundaryKind::kInBranch, Projection::kLearned);
  EXPECT_EQ(NamesUnder(model, {"block0", "boundaries.block0"}),
            (Names{"block0.norm1.weight", "block0.attention.qkv.weight", "block0.attention.out.weight",
                   "boundaries.block0.norm2.weight", "boundaries.block0.mlp.gate.weight",
                   "boundaries.block0.mlp.up.weight", "boundaries.block0.mlp.down.weight",
                   "boundaries.block0.shortcut_down.weight", "boundaries.block0.decompressor.weight",
                   "boundaries.block0.norm1.weight", "boundaries.block0.attention.qkv.weight",
                   "boundaries.block0.attention.out.weight", "boundaries.block0.shortcut_up.weight"}));
  // Both its halves stand in boundaries.
  EXPECT_EQ(NamesUnder(model, {"block1."}), Names{});
  EXPECT_EQ(NamesUnder(model, {"block3."}),
            (Names{"block3.norm2.weight", "block3.mlp.gate.weight", "block3.mlp.up.weight", "block3.mlp.down.weight"}));
}

TEST(TransformerNames, AnAdaptersAreNearThoseOfTheResidualBottleneck) {
  EXPECT_EQ(NamesUnder(Gpt(BoundaryKind::kAdapter, Projection::kTruncate), {"boundaries.block2"}),
            (Names{"boundaries.block2.norm_in.weight", "boundaries.block2.compressor.weight",
                   "boundaries.block2.norm1.weight", "boundaries.block2.low_dim.weight",
                   "boundaries.block2.expander.weight"}));
  EXPECT_EQ(NamesUnder(Gpt(BoundaryKind::kLinear, Projection::kTruncate), {"boundaries.block2"}),
            (Names{"boundaries.block2.compressor.weight", "boundaries.block2.expander.weight"}));
}

// Of the boundary after "block0": width 16, 4 cross, hidden 24.
std::uint64_t SizeOfBoundary(BoundaryKind kind, Projection projection) {
  std::uint64_t size = 0;
  Pipeline pipeline(Gpt(kind, projection), {});
  for (const ParameterInfo& info : pipeline.stages()[0]->parameters()) {
    if (absl::StartsWith(info.name, "boundaries.block0.")) size += info.size;
  }
  return size;
}

TEST(TransformerSizes, AreThoseThatTheCoordinatorPlans) {
  const std::uint64_t in_branch = 16 + 2 * 24 * 16 + 4 * 24 + 16 * 4 + 16 + 4 * 16 * 16;
  EXPECT_EQ(SizeOfBoundary(BoundaryKind::kInBranch, Projection::kTruncate), in_branch);
  EXPECT_EQ(SizeOfBoundary(BoundaryKind::kInBranch, Projection::kOrthogonal), in_branch);
  EXPECT_EQ(SizeOfBoundary(BoundaryKind::kInBranch, Projection::kLearned), in_branch + 2 * 16 * 4);
  const std::uint64_t adapter = 16 + 4 * 16 + 4 + 16 * 4 + 16 * 16;
  EXPECT_EQ(SizeOfBoundary(BoundaryKind::kAdapter, Projection::kTruncate), adapter);
  EXPECT_EQ(SizeOfBoundary(BoundaryKind::kAdapter, Projection::kOrthogonal), adapter);
  EXPECT_EQ(SizeOfBoundary(BoundaryKind::kAdapter, Projection::kLearned), adapter + 2 * 16 * 4);
  EXPECT_EQ(SizeOfBoundary(BoundaryKind::kLinear, Projection::kTruncate), 2u * 16 * 4);
}

double DeviationOf(const std::vector<float>& values) {
  double square = 0;
  for (const float value : values) square += double{value} * value;
  return std::sqrt(square / static_cast<double>(values.size()));
}

TEST(TransformerStarts, AreThoseOfTheirSources) {
  Pipeline pipeline(Gpt(BoundaryKind::kInBranch, Projection::kTruncate), {1});
  pipeline.Initialise(5);
  const auto weights = pipeline.Weights();
  const auto expect = [&](const std::string& name, double deviation) {
    const std::vector<float> values = Floats(weights.at(name));
    // Five standard errors of a deviation.
    const double tolerance = 5 * deviation / std::sqrt(2.0 * static_cast<double>(values.size()));
    EXPECT_NEAR(DeviationOf(values), deviation, tolerance) << name;
  };
  expect("embedding.weight", 0.02);
  expect("head.weight", 0.02);
  const double inner = 1 / std::sqrt(3.0 * 16);
  expect("block0.attention.qkv.weight", inner);
  expect("block0.attention.out.weight", inner / std::sqrt(2.0));
  expect("boundaries.block2.attention.out.weight", inner / std::sqrt(8.0));
  expect("boundaries.block1.mlp.gate.weight", inner);
  expect("boundaries.block1.mlp.down.weight", 1 / std::sqrt(3.0 * 24) / std::sqrt(4.0));
  expect("boundaries.block1.decompressor.weight", 1 / std::sqrt(3.0 * 4));
  for (const float value : Floats(weights.at("boundaries.block1.norm1.weight"))) EXPECT_EQ(value, 1);
}

TEST(TransformerStarts, PredictionsAreNearlyUniform) {
  for (const GptVariant& variant : GptVariants()) {
    const WholeModel model = Gpt(variant.kind, variant.projection);
    Pipeline pipeline(model, {});
    pipeline.Initialise(5);
    const Batch batch = MakeTokenBatch(model, 4, 1, 1, {32});
    EXPECT_NEAR(pipeline.EvaluateLoss(batch) / 32, std::log(13.0), 0.05) << variant.name;
  }
}

// [rows, columns] row-major: the largest error of its rows being orthonormal.
double OffOrthonormal(const std::vector<float>& values, std::size_t rows, std::size_t columns) {
  double worst = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < rows; ++j) {
      double product = 0;
      for (std::size_t k = 0; k < columns; ++k) product += double{values[i * columns + k]} * values[j * columns + k];
      worst = std::max(worst, std::abs(product - (i == j ? 1 : 0)));
    }
  }
  return worst;
}

std::vector<float> Transposed(const std::vector<float>& values, std::size_t rows, std::size_t columns) {
  std::vector<float> transposed(values.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < columns; ++k) transposed[k * rows + i] = values[i * columns + k];
  }
  return transposed;
}

std::map<std::string, std::string> After(const WholeModel& model, const std::vector<int>& cuts, int steps) {
  Pipeline pipeline(model, cuts);
  pipeline.Initialise(7);
  for (int step = 0; step < steps; ++step) {
    pipeline.Apply(pipeline.Compute(MakeTokenBatch(model, 4, 2, 1), Order::kGpipe), 1, 0.02);
  }
  return pipeline.Weights();
}

class EveryProjection : public testing::TestWithParam<BoundaryKind> {};

TEST_P(EveryProjection, OrthogonalIsOneMatrixAtBothEndsAndNeverChanges) {
  const WholeModel model = Gpt(GetParam(), Projection::kOrthogonal);
  const auto before = After(model, {0, 1, 2}, 0);
  const auto after = After(model, {0, 1, 2}, 3);
  for (const std::string block : {"block0", "block1"}) {
    const std::string down = "boundaries." + block + ".shortcut_down.weight";
    const std::string up = "boundaries." + block + ".shortcut_up.weight";
    const std::vector<float> rows = Floats(before.at(down));
    EXPECT_LT(OffOrthonormal(rows, 4, 16), 1e-6);
    EXPECT_EQ(Transposed(rows, 4, 16), Floats(before.at(up)));
    EXPECT_EQ(before.at(down), after.at(down));
    EXPECT_EQ(before.at(up), after.at(up));
  }
  EXPECT_NE(before.at("boundaries.block0.shortcut_down.weight"), before.at("boundaries.block1.shortcut_down.weight"));
}

TEST_P(EveryProjection, LearnedStartsAlikeAtBothEndsAndStaysOrthonormalWhileEachEndLearns) {
  MuonOptions muon;
  muon.adamw_rate_ratio = 1;
  for (const OptimizerOptions& optimizer : {OptimizerOptions(AdamWOptions()), OptimizerOptions(muon)}) {
    WholeModel model = Gpt(GetParam(), Projection::kLearned);
    model.optimizer = optimizer;
    const auto before = After(model, {0, 1, 2}, 0);
    const auto after = After(model, {0, 1, 2}, 3);
    const std::vector<float> down = Floats(after.at("boundaries.block0.shortcut_down.weight"));
    const std::vector<float> up = Floats(after.at("boundaries.block0.shortcut_up.weight"));
    const std::vector<float> down_before = Floats(before.at("boundaries.block0.shortcut_down.weight"));
    EXPECT_EQ(Transposed(down_before, 4, 16), Floats(before.at("boundaries.block0.shortcut_up.weight")));
    EXPECT_LT(OffOrthonormal(down, 4, 16), 1e-6);
    EXPECT_LT(OffOrthonormal(Transposed(up, 16, 4), 4, 16), 1e-6);
    EXPECT_NE(down, down_before);
    EXPECT_NE(Transposed(down, 4, 16), up);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryProjection, testing::Values(BoundaryKind::kInBranch, BoundaryKind::kAdapter));

// Logits [samples, 8, 13] of the model's first stage.
std::vector<float> Logits(const GptOptions& options, const std::string& tokens) {
  const WholeModel model = SmallGptThatShowsItsLogits(options);
  Pipeline pipeline(model, {3});
  pipeline.Initialise(3);
  EncodedTensor input = MakeTokenBatch(model, 1, 1, 1).images[0];
  input.payload = SharedBytes::CopyOf(tokens);
  const auto result = pipeline.stages()[0]->Evaluate({input}, nullptr);
  EXPECT_TRUE(result.ok()) << result.status();
  return Floats(std::string(result->activations.at(0).payload.view()));
}

TEST(Causality, ALaterTokenChangesNothingBeforeIt) {
  for (const GptVariant& variant : GptVariants()) {
    GptOptions options;
    options.kind = variant.kind;
    options.projection = variant.projection;
    options.codec = WireCodec::kFp32;
    const std::vector<float> before = Logits(options, std::string("\1\2\3\4\5\6\7\10", 8));
    const std::vector<float> after = Logits(options, std::string("\1\2\3\4\5\14\7\10", 8));
    for (std::size_t t = 0; t < 8; ++t) {
      double change = 0;
      for (std::size_t i = t * 13; i < t * 13 + 13; ++i)
        change = std::max<double>(change, std::abs(after[i] - before[i]));
      if (t < 5) {
        EXPECT_EQ(change, 0) << variant.name << ", position " << t;
      } else {
        EXPECT_GT(change, 0) << variant.name << ", position " << t;
      }
    }
  }
}

TEST(Rotary, OrderMatters) {
  GptOptions options;
  options.kind = BoundaryKind::kIdentity;
  const std::vector<float> a = Logits(options, std::string("\1\2\3\4\5\6\7\10", 8));
  const std::vector<float> b = Logits(options, std::string("\2\1\3\4\5\6\7\10", 8));
  double change = 0;
  for (std::size_t i = 7 * 13; i < 8 * 13; ++i) change = std::max<double>(change, std::abs(a[i] - b[i]));
  EXPECT_GT(change, 1e-6);
}

void ExpectRefused(const std::function<void(WholeModel&)>& change, const std::string& says,
                   BoundaryKind kind = BoundaryKind::kInBranch) {
  WholeModel model = Gpt(kind, Projection::kTruncate);
  change(model);
  const auto stage = StageModel::Create(Cut(model, {})[0], ComputeOptions());
  EXPECT_EQ(stage.status().code(), absl::StatusCode::kInvalidArgument) << says;
  EXPECT_TRUE(absl::StrContains(stage.status().message(), says)) << stage.status();
}

DecoderBlock& BlockAt(WholeModel& model, std::size_t layer) { return std::get<DecoderBlock>(model.layers[layer].kind); }

TEST(TransformerRefusals, OfLayersNameTheField) {
  const auto identity = BoundaryKind::kIdentity;
  ExpectRefused([](WholeModel& m) { BlockAt(m, 1).heads = 3; }, "heads: 3 do not divide a width of 16", identity);
  ExpectRefused([](WholeModel& m) { BlockAt(m, 1).heads = 16; }, "heads: 16 do not divide", identity);
  ExpectRefused([](WholeModel& m) { BlockAt(m, 1).hidden = 0; }, "hidden is 0", identity);
  ExpectRefused([](WholeModel& m) { BlockAt(m, 1).dropout = 1; }, "dropout is 1", identity);
  ExpectRefused([](WholeModel& m) { BlockAt(m, 1).rotary_base = 0.5; }, "rotary_base is 0.5", identity);
  ExpectRefused([](WholeModel& m) { BlockAt(m, 1).norm_epsilon = 0; }, "norm_epsilon is 0", identity);
  ExpectRefused([](WholeModel& m) { BlockAt(m, 1).width = 20; }, "takes [positions, 20]", identity);
  ExpectRefused([](WholeModel& m) { std::get<TokenEmbedding>(m.layers[0].kind).vocabulary = 0; }, "vocabulary is 0");
  ExpectRefused([](WholeModel& m) { std::get<LanguageHead>(m.layers[5].kind).vocabulary = 12; }, "gives [8, 12]");
  ExpectRefused([](WholeModel& m) { m.loss = Loss::kCrossEntropy; }, "must give [classes]");
  ExpectRefused([](WholeModel& m) { m.input = InputKind::kImages; }, "means");
  ExpectRefused([](WholeModel& m) { m.layers[0].kind = LanguageHead{16, 16}; }, "layer \"embedding\"");
}

TEST(TransformerRefusals, OfBoundariesNameTheField) {
  const auto adapter = BoundaryKind::kAdapter;
  ExpectRefused([](WholeModel& m) { m.boundaries[0].crossing_channels = 17; }, "crossing_channels 17", adapter);
  ExpectRefused([](WholeModel& m) { m.boundaries[0].crossing_channels = 2; }, "[8, 2] crosses", adapter);
  ExpectRefused([](WholeModel& m) { m.boundaries[0].out_channels = 8; }, "keeps its shape", adapter);
  ExpectRefused([](WholeModel& m) { m.boundaries[0].init_gain = -1; }, "init_gain is -1", adapter);
  ExpectRefused([](WholeModel& m) { m.boundaries[0].init = BoundaryInit::kTiedOrthogonal; }, "init.kind", adapter);
  ExpectRefused([](WholeModel& m) { m.boundaries[0].in_channels = 4; }, "takes [positions, 4]", adapter);
  ExpectRefused([](WholeModel& m) { m.boundaries[0].decoder_block.heads = 0; }, "decoder_block: heads is 0");
  ExpectRefused([](WholeModel& m) { m.boundaries[0].decoder_block.width = 8; }, "decoder_block has a width of 8");
}

TEST(TransformerRefusals, TopKKeepsAsManyAtEachPosition) {
  ExpectRefused([](WholeModel& m) { ++m.boundaries[0].kept; }, "as many at each of its 8 positions",
                BoundaryKind::kTopK);
}

TEST(TransformerRefusals, HalvesOfBlocksStandInExactlyOnePlace) {
  ExpectRefused([](WholeModel& m) { BlockAt(m, 1).mlp_in_boundary = false; },
                "layer \"block0\": the IN_BRANCH boundary after it takes the MLP");
  ExpectRefused([](WholeModel& m) { BlockAt(m, 2).attention_in_boundary = false; },
                "layer \"block1\": the IN_BRANCH boundary before it takes the attention");
  ExpectRefused([](WholeModel& m) { BlockAt(m, 4).mlp_in_boundary = true; },
                "layer \"block3\": its MLP should stand in the boundary after it");
  ExpectRefused([](WholeModel& m) { BlockAt(m, 1).attention_in_boundary = true; },
                "layer \"block0\": its attention should stand in the boundary before it");
  ExpectRefused([](WholeModel& m) { BlockAt(m, 2).mlp_in_boundary = true; }, "which is no IN_BRANCH",
                BoundaryKind::kAdapter);
  ExpectRefused([](WholeModel& m) { BlockAt(m, 2).hidden = 25; }, "layer \"block1\" has width 16, heads 2, hidden 25");
}

TEST(Tokens, OutsideTheVocabularyAreRefused) {
  const WholeModel model = Gpt(BoundaryKind::kInBranch, Projection::kTruncate);
  Pipeline pipeline(model, {1});
  pipeline.Initialise(1);
  Batch batch = MakeTokenBatch(model, 2, 1, 1);
  EncodedTensor& input = batch.images[0];
  input.payload = SharedBytes::CopyOf(std::string(16, '\15'));
  const auto result = pipeline.stages()[0]->Forward(0, {input}, nullptr, batch.ids[0]);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(result.status().message(), "token 13 is not one of 13")) << result.status();
}

}  // namespace
}  // namespace resbm::model
