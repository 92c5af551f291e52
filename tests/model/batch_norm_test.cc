// BatchNorm's running statistics: staged with the step, committed with it, never moved by anything else.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "tests/model/support/models.h"
#include "tests/model/support/pipeline.h"

namespace resbm::model {
namespace {

WholeModel Model() {
  WholeModel model = SmallResnet(WireCodec::kFp16, SgdOptions());
  for (LayerSpec& layer : model.layers) {
    if (auto* stem = std::get_if<ConvStem>(&layer.kind)) stem->batch_norm = true;
    if (auto* block = std::get_if<ResidualBlock>(&layer.kind)) block->batch_norm = true;
  }
  return model;
}

using Weights = std::map<std::string, std::string>;

Weights StatisticsOf(const Pipeline& pipeline) {
  Weights statistics;
  for (const auto& [name, bytes] : pipeline.Weights()) {
    if (absl::StrContains(name, "running_")) statistics[name] = bytes;
  }
  return statistics;
}

Weights Train(const WholeModel& model, const std::vector<int>& cuts, Order order) {
  Pipeline pipeline(model, cuts);
  pipeline.Initialise(11);
  for (int step = 0; step < 3; ++step) {
    const Batch batch = MakeBatch(model, 8, 3, static_cast<std::uint32_t>(step));
    pipeline.Apply(pipeline.Compute(batch, order), 0.5, 0.05);
    pipeline.EvaluateLoss(batch);
  }
  return pipeline.Weights();
}

TEST(BatchNorm, KeepsTheFirstLawAndRecomputationCountsOnce) {
  WholeModel model = Model();
  const Weights expected = Train(model, {}, Order::kGpipe);
  ASSERT_TRUE(expected.count("stem.norm.running_mean"));
  for (const std::vector<int>& cuts : {std::vector<int>{1}, {0, 2}, {0, 1, 2, 3}}) {
    EXPECT_TRUE(Train(model, cuts, Order::kOneFOneB) == expected) << cuts.size() + 1 << " stages";
  }
  for (BoundarySpec& boundary : model.boundaries) boundary.recompute = true;
  for (LayerSpec& layer : model.layers) layer.recompute = true;
  EXPECT_TRUE(Train(model, {1}, Order::kOneFOneB) == expected);
}

TEST(BatchNorm, StatisticsMoveWithTheStepThatIsAppliedAndNoOther) {
  const WholeModel model = Model();
  Pipeline pipeline(model, {1});
  pipeline.Initialise(11);
  const Weights start = StatisticsOf(pipeline);
  for (const float value : Floats(start.at("stem.norm.running_mean"))) EXPECT_EQ(value, 0);
  for (const float value : Floats(start.at("stem.norm.running_var"))) EXPECT_EQ(value, 1);

  const Batch batch = MakeBatch(model, 8, 2, 1);
  const double loss = pipeline.EvaluateLoss(batch);
  pipeline.Compute(batch, Order::kGpipe);
  EXPECT_EQ(StatisticsOf(pipeline), start);        // not before the step is applied
  EXPECT_EQ(pipeline.EvaluateLoss(batch), loss);   // nor seen by an evaluation
  for (auto& stage : pipeline.stages()) stage->DropStep();
  EXPECT_EQ(StatisticsOf(pipeline), start);

  pipeline.Apply(pipeline.Compute(batch, Order::kGpipe), 0, 0.0);
  const Weights moved = StatisticsOf(pipeline);
  for (const auto& [name, bytes] : moved) EXPECT_NE(bytes, start.at(name)) << name;

  // As if the dropped step had never been.
  Pipeline other(model, {1});
  other.Initialise(11);
  other.Apply(other.Compute(batch, Order::kGpipe), 0, 0.0);
  EXPECT_EQ(StatisticsOf(other), moved);
}

// A last batch of one sample, where an image is one pixel.
TEST(BatchNorm, OneValueAChannelLeavesTheStatisticsAlone) {
  WholeModel model = ModelBuilder({1, 2, 2}).Stem(8, 2, 1).Pool().Dense("head", 5, false).Optimizer(SgdOptions()).Build();
  std::get<ConvStem>(model.layers[0].kind).batch_norm = true;
  Pipeline pipeline(model, {});
  pipeline.Initialise(11);
  pipeline.Apply(pipeline.Compute(MakeBatch(model, 4, 1, 1), Order::kGpipe), 0, 0.01);
  const Weights statistics = StatisticsOf(pipeline);
  ASSERT_FALSE(statistics.empty());
  pipeline.Apply(pipeline.Compute(MakeBatch(model, 1, 1, 2), Order::kGpipe), 0, 0.01);
  EXPECT_EQ(StatisticsOf(pipeline), statistics);
  EXPECT_TRUE(std::isfinite(pipeline.EvaluateLoss(MakeBatch(model, 4, 1, 3))));
}

TEST(BatchNorm, StatisticsTravelWithTheWeights) {
  const WholeModel model = Model();
  Pipeline trained(model, {});
  trained.Initialise(11);
  const Batch batch = MakeBatch(model, 8, 2, 1);
  trained.Apply(trained.Compute(batch, Order::kGpipe), 0, 0.05);
  Pipeline loaded(model, {});
  loaded.LoadWeights(*trained.stages()[0]->SaveWeights());
  EXPECT_EQ(loaded.EvaluateLoss(batch), trained.EvaluateLoss(batch));
}

}  // namespace
}  // namespace resbm::model
