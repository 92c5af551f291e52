// The first law: the weights are bit for bit the same for every number of stages, every schedule and window.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/model/support/models.h"
#include "tests/model/support/pipeline.h"

namespace resbm::model {
namespace {

SgdOptions NesterovSgd() {
  SgdOptions options;
  options.momentum = 0.9;
  options.nesterov = true;
  options.weight_decay = 5e-4;
  return options;
}

struct Training {
  int micro_batches = 3;
  Order order = Order::kGpipe;
  double clip_norm = 0.5;
  int steps = 3;
  int samples = 8;
  ComputeOptions compute = {};
};

std::map<std::string, std::string> Train(const WholeModel& model, const std::vector<int>& cuts, const Training& run) {
  Pipeline pipeline(model, cuts, run.compute);
  pipeline.Initialise(11);
  for (int step = 0; step < run.steps; ++step) {
    const Batch batch = MakeBatch(model, run.samples, run.micro_batches, static_cast<std::uint32_t>(step));
    const StepResult result = pipeline.Compute(batch, run.order);
    EXPECT_TRUE(result.non_finite.empty());
    pipeline.Apply(result, run.clip_norm, 0.05);
  }
  return pipeline.Weights();
}

// Every subset of the boundaries: P = 1 to boundaries + 1.
std::vector<std::vector<int>> AllCuts(const WholeModel& model) {
  std::vector<std::vector<int>> all;
  for (unsigned mask = 0; mask < 1u << model.boundaries.size(); ++mask) {
    std::vector<int> cuts;
    for (unsigned b = 0; b < model.boundaries.size(); ++b) {
      if (mask >> b & 1) cuts.push_back(static_cast<int>(b));
    }
    all.push_back(cuts);
  }
  return all;
}

// One choice for each P.
std::vector<std::vector<int>> OneCutEach(const WholeModel& model) {
  if (model.boundaries.size() < 4) return AllCuts(model);
  return {{1}, {0, 2}, {0, 1, 3}, {0, 1, 2, 3}};
}

void ExpectTheSame(const WholeModel& model, const std::vector<std::vector<int>>& all_cuts, Training run) {
  run.order = Order::kGpipe;
  const auto expected = Train(model, {}, run);
  ASSERT_FALSE(expected.empty());
  for (const std::vector<int>& cuts : all_cuts) {
    for (const Order order : {Order::kGpipe, Order::kOneFOneB}) {
      run.order = order;
      EXPECT_TRUE(Train(model, cuts, run) == expected)
          << cuts.size() + 1 << " stages, M = " << run.micro_batches << (order == Order::kGpipe ? ", GPipe" : ", 1F1B");
    }
  }
}

class FirstLaw : public testing::TestWithParam<int> {};

TEST_P(FirstLaw, HoldsWithFp32OnTheWireAndSgd) {
  const WholeModel model = SmallResnet(WireCodec::kFp32, NesterovSgd());
  ExpectTheSame(model, OneCutEach(model), {.micro_batches = GetParam()});
}

TEST_P(FirstLaw, HoldsWithFp16OnTheWireAndSgd) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, NesterovSgd());
  ExpectTheSame(model, OneCutEach(model), {.micro_batches = GetParam()});
}

TEST_P(FirstLaw, HoldsWithFp16OnTheWireAndAdamW) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, AdamWOptions());
  ExpectTheSame(model, OneCutEach(model), {.micro_batches = GetParam()});
}

TEST_P(FirstLaw, HoldsWithFp16OnTheWireAndMuon) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, MuonOptions());
  ExpectTheSame(model, OneCutEach(model), {.micro_batches = GetParam()});
}

TEST_P(FirstLaw, HoldsForTheMlp) {
  const WholeModel model = SmallMlp(WireCodec::kFp16, NesterovSgd());
  ExpectTheSame(model, OneCutEach(model), {.micro_batches = GetParam()});
}

// Below, equal to and above the number of stages; 3 and 7 leave smaller micro-batches of 8 samples.
INSTANTIATE_TEST_SUITE_P(MicroBatches, FirstLaw, testing::Values(1, 3, 4, 7), testing::PrintToStringParamName());

TEST(FirstLaw, HoldsForEverySubsetOfTheCuts) {
  for (const WireCodec codec : {WireCodec::kFp32, WireCodec::kFp16}) {
    const WholeModel model = SmallResnet(codec, NesterovSgd());
    ExpectTheSame(model, AllCuts(model), {.micro_batches = 3, .steps = 2});
  }
}

TEST(FirstLaw, HoldsWithBf16OnTheWire) {
  const WholeModel model = SmallResnet(WireCodec::kBf16, AdamWOptions());
  ExpectTheSame(model, OneCutEach(model), {.micro_batches = 3});
}

TEST(FirstLaw, HoldsWithChannelsInnermost) {
  Training run{.micro_batches = 3};
  run.compute.channels_last = true;
  const WholeModel model = SmallResnet(WireCodec::kFp16, NesterovSgd());
  ExpectTheSame(model, OneCutEach(model), run);
}

TEST(FirstLaw, HoldsWithMuonAndChannelsInnermost) {
  Training run{.micro_batches = 3};
  run.compute.channels_last = true;
  const WholeModel model = SmallResnet(WireCodec::kFp16, MuonOptions());
  ExpectTheSame(model, OneCutEach(model), run);
}

TEST(FirstLaw, HoldsWithTwoThreads) {
  Training run{.micro_batches = 3, .steps = 2};
  run.compute.threads = 2;
  const WholeModel model = SmallResnet(WireCodec::kFp16, NesterovSgd());
  ExpectTheSame(model, {{0, 2}}, run);  // two threads are slow on a busy machine
}

TEST(FirstLaw, TheWireCodecIsAppliedAtUncutBoundaries) {
  EXPECT_FALSE(Train(SmallResnet(WireCodec::kFp16, NesterovSgd()), {}, {}) ==
               Train(SmallResnet(WireCodec::kFp32, NesterovSgd()), {}, {}));
}

TEST(FirstLaw, ClippingChangesTheWeights) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, NesterovSgd());
  EXPECT_FALSE(Train(model, {}, {.clip_norm = 0.5}) == Train(model, {}, {.clip_norm = 0}));
}

TEST(FirstLaw, EvaluationIsTheSameAtEveryCut) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, NesterovSgd());
  const Batch batch = MakeBatch(model, 9, 2, 3);
  Pipeline whole(model, {});
  whole.Initialise(5);
  const double expected = whole.EvaluateLoss(batch);
  for (const std::vector<int>& cuts : AllCuts(model)) {
    Pipeline pipeline(model, cuts);
    pipeline.Initialise(5);
    EXPECT_EQ(pipeline.EvaluateLoss(batch), expected) << cuts.size() + 1 << " stages";
  }
}

// The number of micro-batches changes the order of sums, so within tolerance only.
TEST(MicroBatches, GiveTheGradientOfTheUnsplitBatch) {
  for (const WholeModel& model :
       {SmallResnet(WireCodec::kFp32, NesterovSgd()), SmallMlp(WireCodec::kFp32, NesterovSgd())}) {
    Pipeline whole(model, {});
    whole.Initialise(3);
    const StepResult expected = whole.Compute(MakeBatch(model, 8, 1, 1), Order::kGpipe);
    const auto reference = whole.Gradients();
    for (const int micro_batches : {2, 3, 8}) {
      Pipeline pipeline(model, {0, 1, 2});
      pipeline.Initialise(3);
      const StepResult step = pipeline.Compute(MakeBatch(model, 8, micro_batches, 1), Order::kOneFOneB);
      EXPECT_NEAR(step.loss_sum, expected.loss_sum, 1e-5 * expected.loss_sum);
      EXPECT_EQ(step.weight, 8);
      EXPECT_NEAR(step.norm, expected.norm, 1e-4 * expected.norm);
      for (const auto& [name, bytes] : pipeline.Gradients()) {
        const std::vector<float> values = Floats(bytes);
        const std::vector<float> wanted = Floats(reference.at(name));
        double error = 0;
        double size = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          error = std::max(error, std::abs(double{values[i]} - wanted[i]));
          size = std::max(size, std::abs(double{wanted[i]}));
        }
        EXPECT_LE(error, 1e-4 * size + 1e-6) << name << ", M = " << micro_batches;
      }
    }
  }
}

TEST(Pipeline, LowersTheLoss) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, NesterovSgd());
  Pipeline pipeline(model, {0, 2});
  pipeline.Initialise(1);
  const Batch batch = MakeBatch(model, 8, 4, 1);
  const double before = pipeline.EvaluateLoss(batch);
  for (int step = 0; step < 30; ++step) pipeline.Apply(pipeline.Compute(batch, Order::kOneFOneB), 1.0, 0.05);
  EXPECT_LT(pipeline.EvaluateLoss(batch), 0.5 * before);
}

TEST(Pipeline, LowersTheLossWithMuon) {
  MuonOptions muon;
  muon.adamw_rate_ratio = 0.1;
  const WholeModel model = SmallResnet(WireCodec::kFp16, muon);
  Pipeline pipeline(model, {0, 2});
  pipeline.Initialise(1);
  const Batch batch = MakeBatch(model, 8, 4, 1);
  const double before = pipeline.EvaluateLoss(batch);
  for (int step = 0; step < 30; ++step) pipeline.Apply(pipeline.Compute(batch, Order::kOneFOneB), 0, 0.02);
  EXPECT_LT(pipeline.EvaluateLoss(batch), 0.5 * before);
}

}  // namespace
}  // namespace resbm::model
