// Signals of a cut, as numbers and as a stage reports them.
#include "model/signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <map>
#include <string>

#include "tests/model/support/models.h"
#include "tests/model/support/pipeline.h"

namespace resbm::model {
namespace {

TEST(RootMeanSquare, IsOfAllValues) {
  const at::Tensor values = at::arange(1, 5, at::kFloat);
  EXPECT_NEAR(RootMeanSquare(values), std::sqrt((1 + 4 + 9 + 16) / 4.0), 1e-6);
  EXPECT_EQ(RootMeanSquare(at::zeros({0, 3})), 0);
}

TEST(EffectiveRank, IsOneOfOneDirectionAndTheChannelsOfAllAlike) {
  EXPECT_NEAR(EffectiveRank(at::ones({6, 4, 3, 3}), 1), 1, 1e-6);
  const at::Tensor alike = at::eye(4).view({4, 4, 1, 1});  // sample i uses channel i alone
  EXPECT_NEAR(EffectiveRank(alike, 1), 4, 1e-6);
  EXPECT_NEAR(EffectiveRank(at::eye(4).view({1, 4, 4}), 2), 4, 1e-6);
}

TEST(EffectiveRank, WeighsDirectionsByTheirEntropy) {
  // Channel energies 3 : 1, so exp(-(3/4 ln 3/4 + 1/4 ln 1/4)).
  at::Tensor z = at::zeros({4, 2, 1, 1});
  for (int i = 0; i < 3; ++i) z[i][0][0][0] = 1;
  z[3][1][0][0] = 1;
  EXPECT_NEAR(EffectiveRank(z, 1), std::exp(-(0.75 * std::log(0.75) + 0.25 * std::log(0.25))), 1e-6);
}

TEST(EffectiveRank, OfNothingOrOfValuesThatAreNotFiniteIsZero) {
  EXPECT_EQ(EffectiveRank(at::zeros({2, 3, 1, 1}), 1), 0);
  EXPECT_EQ(EffectiveRank(at::zeros({0, 3, 1, 1}), 1), 0);
  EXPECT_EQ(EffectiveRank(at::ones({2, 3, 1, 1}).div(0), 1), 0);
}

using Values = std::map<std::string, double>;

Values SignalsOf(const std::vector<int>& cuts, bool wanted, bool recompute = false, double loss_scale = 1) {
  WholeModel model = SmallResnet(WireCodec::kFp32, SgdOptions());
  if (recompute) {
    for (BoundarySpec& boundary : model.boundaries) boundary.recompute = true;
  }
  std::vector<std::unique_ptr<StageModel>> stages;
  for (StageSpec& spec : Cut(model, cuts)) {
    spec.signals = wanted;
    stages.push_back(*StageModel::Create(spec, ComputeOptions()));
    EXPECT_TRUE(stages.back()->Initialise(11).ok());
  }
  const Batch batch = MakeBatch(model, 6, 2, 1);
  Values values;
  const auto add = [&](const std::vector<Signal>& signals) {
    for (const Signal& signal : signals) {
      EXPECT_TRUE(values.emplace(signal.cut_point + " " + signal.name, signal.value).second) << "twice";
    }
  };
  for (int m = 0; m < 2; ++m) {
    EncodedTensors x = {batch.images[m]};
    for (auto& stage : stages) {
      const ForwardResult result = *stage->Forward(m, x, stage == stages.back() ? &batch.labels[m] : nullptr);
      add(result.signals);
      x = result.activations;
    }
    EncodedTensors gradients;
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      const BackwardResult result = *(*stage)->Backward(m, gradients, loss_scale);
      add(result.signals);
      gradients = result.gradients;
    }
  }
  return values;
}

TEST(Signals, ComeOfEveryCutPointOnceAStepWhereverTheModelIsCut) {
  const Values whole = SignalsOf({}, true);
  EXPECT_EQ(whole.size(), 4u * 4);  // 4 cut points, 4 signals
  for (const auto& [name, value] : whole) EXPECT_GT(value, 0) << name;
  EXPECT_EQ(SignalsOf({1, 2}, true), whole);
  EXPECT_EQ(SignalsOf({0, 1, 2, 3}, true), whole);
  EXPECT_EQ(SignalsOf({1}, true, /*recompute=*/true), whole);
  EXPECT_EQ(SignalsOf({1}, true, /*recompute=*/false, /*loss_scale=*/1024), whole);
  EXPECT_TRUE(SignalsOf({1}, false).empty());
}

}  // namespace
}  // namespace resbm::model
