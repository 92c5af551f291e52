// bf16: products in reduced precision, everything that lasts in fp32.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/model/support/models.h"
#include "tests/model/support/pipeline.h"

namespace resbm::model {
namespace {

WholeModel Model(Precision precision) {
  SgdOptions sgd;
  sgd.momentum = 0.9;
  WholeModel model = SmallResnet(WireCodec::kBf16, sgd);
  model.precision = precision;
  return model;
}

struct Trained {
  std::map<std::string, std::string> weights;
  double first_loss = 0;
  double last_loss = 0;
};

Trained Train(const WholeModel& model, const std::vector<int>& cuts, Order order, int steps) {
  Pipeline pipeline(model, cuts);
  pipeline.Initialise(11);
  Trained trained;
  for (int step = 0; step < steps; ++step) {
    const StepResult result = pipeline.Compute(MakeBatch(model, 8, 3, 1), order);
    EXPECT_TRUE(result.non_finite.empty());
    (step == 0 ? trained.first_loss : trained.last_loss) = result.loss_sum / result.weight;
    pipeline.Apply(result, /*clip_norm=*/1, 0.05);
  }
  trained.weights = pipeline.Weights();
  return trained;
}

TEST(Bf16, KeepsTheFirstLaw) {
  const WholeModel model = Model(Precision::kBf16);
  const auto expected = Train(model, {}, Order::kGpipe, 2).weights;
  ASSERT_FALSE(expected.empty());
  for (const std::vector<int>& cuts : {std::vector<int>{1}, {0, 2}, {0, 1, 3}, {0, 1, 2, 3}}) {
    EXPECT_TRUE(Train(model, cuts, Order::kOneFOneB, 2).weights == expected) << cuts.size() + 1 << " stages";
  }
}

TEST(Bf16, LearnsLikeFp32ButIsNotFp32) {
  const Trained full = Train(Model(Precision::kFp32), {1}, Order::kOneFOneB, 12);
  const Trained half = Train(Model(Precision::kBf16), {1}, Order::kOneFOneB, 12);
  EXPECT_LT(half.last_loss, 0.7 * half.first_loss);
  EXPECT_NEAR(half.first_loss, full.first_loss, 0.02 * full.first_loss);
  EXPECT_FALSE(half.weights == full.weights);
}

TEST(Bf16, WithRecomputationGivesTheSameBits) {
  WholeModel model = Model(Precision::kBf16);
  const auto expected = Train(model, {1}, Order::kGpipe, 2).weights;
  for (BoundarySpec& boundary : model.boundaries) boundary.recompute = true;
  EXPECT_TRUE(Train(model, {1}, Order::kGpipe, 2).weights == expected);
}

// Weights that the model changes are seen by the very next forward pass.
TEST(Bf16, NoCastOfAWeightOutlivesTheStep) {
  const WholeModel model = Model(Precision::kBf16);
  Pipeline pipeline(model, {});
  pipeline.Initialise(11);
  const Batch batch = MakeBatch(model, 8, 1, 1);
  const double before = pipeline.EvaluateLoss(batch);
  pipeline.Apply(pipeline.Compute(batch, Order::kGpipe), 0, 0.05);
  const double after = pipeline.EvaluateLoss(batch);
  EXPECT_NE(before, after);
  Pipeline fresh(model, {});
  std::string weights = *pipeline.stages()[0]->SaveWeights();
  fresh.LoadWeights(weights);
  EXPECT_EQ(fresh.EvaluateLoss(batch), after);
}

}  // namespace
}  // namespace resbm::model
