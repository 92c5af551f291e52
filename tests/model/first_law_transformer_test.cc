// The first law for language models: every boundary of sequences, dropout, clipping, masked tokens, recomputation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/model/support/gpt.h"
#include "tests/model/support/pipeline.h"

namespace resbm::model {
namespace {

struct Training {
  int steps = 2;
  int samples = 7;
  int micro_batches = 3;
  double clip_norm = 0.2;
  double learning_rate = 0.02;
  std::vector<int> valid_tokens = {};
  ComputeOptions compute = {};
};

std::map<std::string, std::string> Train(const WholeModel& model, const std::vector<int>& cuts, Order order,
                                         const Training& run) {
  Pipeline pipeline(model, cuts, run.compute);
  pipeline.Initialise(11);
  for (int step = 0; step < run.steps; ++step) {
    const StepResult result = pipeline.Compute(
        MakeTokenBatch(model, run.samples, run.micro_batches, static_cast<std::uint32_t>(step), run.valid_tokens),
        order);
    EXPECT_TRUE(result.non_finite.empty());
    EXPECT_GT(result.norm, run.clip_norm) << "nothing is clipped";
    pipeline.Apply(result, run.clip_norm, run.learning_rate);
  }
  return pipeline.Weights();
}

const std::vector<std::vector<int>>& OneCutEach() {
  static const std::vector<std::vector<int>> cuts = {{1}, {0, 2}, {0, 1, 2}};
  return cuts;
}

void ExpectTheSame(const WholeModel& model, const Training& run, const std::vector<std::vector<int>>& all_cuts) {
  const auto expected = Train(model, {}, Order::kGpipe, run);
  ASSERT_FALSE(expected.empty());
  for (const std::vector<int>& cuts : all_cuts) {
    for (const Order order : {Order::kGpipe, Order::kOneFOneB}) {
      EXPECT_TRUE(Train(model, cuts, order, run) == expected)
          << cuts.size() + 1 << " stages" << (order == Order::kGpipe ? ", GPipe" : ", 1F1B");
    }
  }
}

GptOptions OptionsOf(const GptVariant& variant) {
  GptOptions options;
  options.kind = variant.kind;
  options.projection = variant.projection;
  return options;
}

class EveryGpt : public testing::TestWithParam<GptVariant> {};

TEST_P(EveryGpt, KeepsTheFirstLawWithDropoutAndClipping) {
  GptOptions options = OptionsOf(GetParam());
  options.dropout = 0.2;
  for (const WireCodec codec : {WireCodec::kFp32, WireCodec::kFp16}) {
    options.codec = codec;
    ExpectTheSame(SmallGpt(options), {}, OneCutEach());
  }
}

TEST_P(EveryGpt, KeepsTheFirstLawWithMuon) {
  GptOptions options = OptionsOf(GetParam());
  options.dropout = 0.1;
  MuonOptions muon;
  muon.adamw_rate_ratio = 0.2;
  options.optimizer = muon;
  ExpectTheSame(SmallGpt(options), {}, OneCutEach());
}

TEST_P(EveryGpt, KeepsTheFirstLawInBf16) {
  GptOptions options = OptionsOf(GetParam());
  options.dropout = 0.1;
  options.codec = WireCodec::kBf16;
  WholeModel model = SmallGpt(options);
  const auto fp32 = Train(model, {}, Order::kGpipe, {});
  model.precision = Precision::kBf16;
  EXPECT_FALSE(Train(model, {}, Order::kGpipe, {}) == fp32);
  ExpectTheSame(model, {}, OneCutEach());
}

TEST_P(EveryGpt, GivesEveryParameterAGradient) {
  GptOptions options = OptionsOf(GetParam());
  options.codec = WireCodec::kFp32;
  const WholeModel model = SmallGpt(options);
  Pipeline pipeline(model, {1});
  pipeline.Initialise(11);
  pipeline.Compute(MakeTokenBatch(model, 4, 2, 1), Order::kGpipe);
  for (const auto& [name, bytes] : pipeline.Gradients()) {
    double largest = 0;
    for (const float value : Floats(bytes)) largest = std::max(largest, std::abs(double{value}));
    EXPECT_GT(largest, 0) << name;
  }
}

TEST_P(EveryGpt, LowersTheLoss) {
  GptOptions options = OptionsOf(GetParam());
  const WholeModel model = SmallGpt(options);
  Pipeline pipeline(model, {0, 1, 2});
  pipeline.Initialise(1);
  const Batch batch = MakeTokenBatch(model, 4, 2, 1);
  const double before = pipeline.EvaluateLoss(batch);
  for (int step = 0; step < 40; ++step) pipeline.Apply(pipeline.Compute(batch, Order::kOneFOneB), 1, 0.02);
  EXPECT_LT(pipeline.EvaluateLoss(batch), 0.5 * before);
}

std::string NameOf(const testing::TestParamInfo<GptVariant>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Boundaries, EveryGpt, testing::ValuesIn(GptVariants()), NameOf);

// Micro-batches of 1, 9 and no valid tokens (scenario 5 of field failures).
TEST(MaskedTokens, MicroBatchesWithOneNineAndNoValidTokensKeepTheFirstLaw) {
  GptOptions options;
  options.dropout = 0.1;
  Training run;
  run.samples = 6;
  run.valid_tokens = {1, 9, 0};
  run.clip_norm = 0.1;
  ExpectTheSame(SmallGpt(options), run, OneCutEach());
}

double LargestError(const std::map<std::string, std::string>& got, const std::map<std::string, std::string>& wanted) {
  double worst = 0;
  for (const auto& [name, bytes] : wanted) {
    const std::vector<float> a = Floats(got.at(name));
    const std::vector<float> b = Floats(bytes);
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
      error = std::max(error, std::abs(double{a[i]} - b[i]));
      size = std::max(size, std::abs(double{b[i]}));
    }
    worst = std::max(worst, error / (size + 1e-6));
  }
  return worst;
}

// One micro-batch that has all the samples of the three, with the same labels masked.
Batch Joined(const Batch& parts) {
  const auto join = [](const std::vector<EncodedTensor>& tensors) {
    EncodedTensor joined = tensors[0];
    std::string bytes;
    joined.dims[0] = 0;
    for (const EncodedTensor& tensor : tensors) {
      joined.dims[0] += tensor.dims[0];
      bytes += std::string(tensor.payload.view());
    }
    joined.payload = SharedBytes::CopyOf(bytes);
    return joined;
  };
  Batch whole;
  whole.samples = parts.samples;
  whole.images = {join(parts.images)};
  whole.labels = {join(parts.labels)};
  whole.ids = {parts.ids[0]};
  for (std::size_t m = 1; m < parts.ids.size(); ++m) {
    whole.ids[0].indices.insert(whole.ids[0].indices.end(), parts.ids[m].indices.begin(), parts.ids[m].indices.end());
  }
  return whole;
}

// With dropout: that masks do not depend on how a batch is split either.
TEST(MaskedTokens, LossAndGradientWeighTokensAsTheUnsplitBatchDoes) {
  GptOptions options;
  options.dropout = 0.3;
  options.codec = WireCodec::kFp32;
  const WholeModel model = SmallGpt(options);
  const Batch parts = MakeTokenBatch(model, 6, 3, 5, {1, 9, 0});
  Pipeline split(model, {0, 2});
  split.Initialise(3);
  const StepResult got = split.Compute(parts, Order::kOneFOneB);
  Pipeline whole(model, {});
  whole.Initialise(3);
  const StepResult wanted = whole.Compute(Joined(parts), Order::kGpipe);
  EXPECT_EQ(got.weight, 10);
  EXPECT_EQ(wanted.weight, 10);
  EXPECT_NEAR(got.loss_sum, wanted.loss_sum, 1e-5 * wanted.loss_sum);
  EXPECT_NEAR(got.norm, wanted.norm, 1e-4 * wanted.norm);
  EXPECT_LE(LargestError(split.Gradients(), whole.Gradients()), 1e-4);
}

// Scenario 10 of field failures: masks are replayed, layers differ, P does not matter.
TEST(TransformerDropout, IsReplayedWhereActivationsAreComputedAgain) {
  for (const BoundaryKind kind : {BoundaryKind::kInBranch, BoundaryKind::kAdapter}) {
    GptOptions options;
    options.kind = kind;
    options.dropout = 0.2;
    const WholeModel kept = SmallGpt(options);
    const auto expected = Train(kept, {}, Order::kGpipe, {});
    WholeModel again = kept;
    for (BoundarySpec& boundary : again.boundaries) boundary.recompute = true;
    EXPECT_TRUE(Train(again, {}, Order::kGpipe, {}) == expected) << "boundaries";
    EXPECT_TRUE(Train(again, {0, 1, 2}, Order::kOneFOneB, {}) == expected) << "boundaries, 4 stages";
    again = kept;
    for (LayerSpec& layer : again.layers) layer.recompute = true;
    EXPECT_TRUE(Train(again, {}, Order::kGpipe, {}) == expected) << "layers";
    EXPECT_TRUE(Train(again, {0, 2}, Order::kOneFOneB, {}) == expected) << "layers, 3 stages";
  }
}

TEST(TransformerDropout, ChangesWhatIsLearntAndFollowsSeedAndEpoch) {
  GptOptions options;
  const auto without = Train(SmallGpt(options), {}, Order::kGpipe, {});
  options.dropout = 0.2;
  WholeModel model = SmallGpt(options);
  const auto with = Train(model, {}, Order::kGpipe, {});
  EXPECT_FALSE(with == without);
  model.seed = 12;
  EXPECT_FALSE(Train(model, {}, Order::kGpipe, {}) == with);

  model.seed = 11;
  Batch batch = MakeTokenBatch(model, 4, 1, 1);
  const auto loss = [&]() {
    Pipeline pipeline(model, {1});
    pipeline.Initialise(11);
    return pipeline.Compute(batch, Order::kGpipe).loss_sum;
  };
  const double first = loss();
  EXPECT_EQ(loss(), first);
  ++batch.ids[0].epoch;
  EXPECT_NE(loss(), first);
}

TEST(TransformerDropout, IsNotThereInEvaluation) {
  GptOptions options;
  const WholeModel without = SmallGpt(options);
  options.dropout = 0.5;
  const WholeModel with = SmallGpt(options);
  const Batch batch = MakeTokenBatch(without, 4, 2, 1);
  Pipeline a(without, {1});
  Pipeline b(with, {1});
  a.Initialise(11);
  b.Initialise(11);
  EXPECT_EQ(a.EvaluateLoss(batch), b.EvaluateLoss(batch));
}

TEST(TransformerDropout, NeedsTheIndicesOfTheSamples) {
  GptOptions options;
  options.dropout = 0.1;
  const WholeModel model = SmallGpt(options);
  Pipeline pipeline(model, {1});
  pipeline.Initialise(11);
  const Batch batch = MakeTokenBatch(model, 4, 1, 1);
  const auto result = pipeline.stages()[0]->Forward(0, {batch.images[0]}, nullptr);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(result.status().message(), "dropout needs the index of each of 4 samples"))
      << result.status();
}

TEST(FirstLawOfTransformers, HoldsInBf16WithDropoutAndRecomputation) {
  for (const BoundaryKind kind : {BoundaryKind::kInBranch, BoundaryKind::kAdapter}) {
    GptOptions options;
    options.kind = kind;
    options.projection = Projection::kLearned;
    options.dropout = 0.2;
    options.codec = WireCodec::kBf16;
    WholeModel model = SmallGpt(options);
    const auto fp32 = Train(model, {}, Order::kGpipe, {});
    model.precision = Precision::kBf16;
    const auto expected = Train(model, {}, Order::kGpipe, {});
    EXPECT_FALSE(expected == fp32);
    ExpectTheSame(model, {}, {{0, 2}});
    for (LayerSpec& layer : model.layers) layer.recompute = true;
    for (BoundarySpec& boundary : model.boundaries) boundary.recompute = true;
    EXPECT_TRUE(Train(model, {0, 1, 2}, Order::kOneFOneB, {}) == expected);
  }
}

TEST(FirstLawOfTransformers, HoldsWithTwoThreads) {
  GptOptions options;
  options.dropout = 0.2;
  Training run;
  run.compute.threads = 2;
  ExpectTheSame(SmallGpt(options), run, {{0, 2}});
}

}  // namespace
}  // namespace resbm::model
