#include "model/stage_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "proto/base/safetensors.h"
#include "tests/model/support/models.h"
#include "tests/model/support/pipeline.h"

namespace resbm::model {
namespace {

SgdOptions MomentumSgd() {
  SgdOptions options;
  options.momentum = 0.9;
  return options;
}

std::unique_ptr<StageModel> Make(const StageSpec& spec) {
  auto stage = StageModel::Create(spec, ComputeOptions());
  EXPECT_TRUE(stage.ok()) << stage.status();
  EXPECT_TRUE((*stage)->Initialise(1).ok());
  return *std::move(stage);
}

void ExpectError(const absl::Status& status, absl::StatusCode code, const std::vector<std::string>& parts) {
  EXPECT_EQ(status.code(), code) << status;
  for (const std::string& part : parts) {
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << part << " is not in: " << status;
  }
}

TEST(StageModel, NamesParametersAsPyTorchDoesInGlobalOrder) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, MomentumSgd());
  const std::vector<std::string> expected = {
      "stem.conv.weight",
      "stem.norm.weight",
      "stem.norm.bias",
      "boundaries.stem.compressor.weight",
      "boundaries.stem.compressor.bias",
      "boundaries.stem.norm1.weight",
      "boundaries.stem.norm1.bias",
      "boundaries.stem.low_dim_conv1.weight",
      "boundaries.stem.low_dim_conv1.bias",
      "boundaries.stem.norm2.weight",
      "boundaries.stem.norm2.bias",
      "boundaries.stem.low_dim_conv2.weight",
      "boundaries.stem.low_dim_conv2.bias",
      "boundaries.stem.expander.weight",
      "boundaries.stem.expander.bias",
      "boundaries.stem.shortcut_recon.weight",
      "boundaries.stem.shortcut_recon.bias",
      "group0.0.conv1.weight",
      "group0.0.norm1.weight",
      "group0.0.norm1.bias",
      "group0.0.conv2.weight",
      "group0.0.norm2.weight",
      "group0.0.norm2.bias",
      "boundaries.group0_0.compressor.weight",
  };
  const std::vector<std::string> names = Pipeline(model, {}).ParameterNames();
  ASSERT_GT(names.size(), expected.size());
  EXPECT_EQ(std::vector<std::string>(names.begin(), names.begin() + static_cast<long>(expected.size())), expected);
  const std::vector<std::string> tail(names.end() - 11, names.end());
  EXPECT_EQ(tail, (std::vector<std::string>{"group1.1.conv1.weight", "group1.1.norm1.weight", "group1.1.norm1.bias",
                                            "group1.1.conv2.weight", "group1.1.norm2.weight", "group1.1.norm2.bias",
                                            "group1.1.conv3.weight", "group1.1.norm3.weight", "group1.1.norm3.bias",
                                            "head.weight", "head.bias"}));
  // Without groups in the low dimension there is no norm.
  EXPECT_EQ(std::count(names.begin(), names.end(), "boundaries.group0_1.norm1.weight"), 0);
  EXPECT_EQ(std::count(names.begin(), names.end(), "boundaries.group0_1.low_dim_conv1.weight"), 1);
  // IDENTITY has no parameters; a block that widens has a shortcut of its own.
  for (const std::string& name : names) EXPECT_EQ(name.find("boundaries.group1_0"), std::string::npos);
  EXPECT_EQ(std::count(names.begin(), names.end(), "group1.0.downsample.0.weight"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "group1.0.downsample.1.bias"), 1);
}

TEST(StageModel, ParameterShapesAndSizesAreThoseOfTheSpec) {
  const std::unique_ptr<StageModel> stage = Make(Cut(SmallResnet(WireCodec::kFp16, MomentumSgd()), {})[0]);
  const auto find = [&](const std::string& name) {
    for (const ParameterInfo& info : stage->parameters()) {
      if (info.name == name) return info;
    }
    return ParameterInfo();
  };
  EXPECT_EQ(find("boundaries.stem.compressor.weight").shape, (std::vector<std::int64_t>{2, 8, 1, 1}));
  EXPECT_EQ(find("boundaries.stem.low_dim_conv1.weight").shape, (std::vector<std::int64_t>{2, 2, 3, 3}));
  EXPECT_EQ(find("boundaries.stem.shortcut_recon.weight").shape, (std::vector<std::int64_t>{8, 2, 1, 1}));
  EXPECT_EQ(find("group1.1.conv1.weight").shape, (std::vector<std::int64_t>{4, 16, 1, 1}));
  EXPECT_EQ(find("head.weight").shape, (std::vector<std::int64_t>{5, 16}));
  EXPECT_EQ(find("boundaries.stem.low_dim_conv1.weight").size, 36u);
}

TEST(StageModel, InitialWeightsDoNotDependOnTheCut) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, MomentumSgd());
  Pipeline whole(model, {});
  whole.Initialise(42);
  const auto expected = whole.Weights();
  for (const std::vector<int>& cuts : {std::vector<int>{0}, {1, 2}, {0, 1, 2, 3}}) {
    Pipeline pipeline(model, cuts);
    pipeline.Initialise(42);
    EXPECT_TRUE(pipeline.Weights() == expected);
    EXPECT_EQ(pipeline.ParameterNames(), whole.ParameterNames());
  }
  whole.Initialise(43);
  EXPECT_NE(whole.Weights().at("stem.conv.weight"), expected.at("stem.conv.weight"));
}

TEST(StageModel, InitialWeightsAreKaimingNormalByFanOut) {
  const WholeModel model = ModelBuilder({64, 4, 4})
                               .Block("wide", 64, 1, 8)
                               .Boundary(2, 8, WireCodec::kFp16, WireCodec::kFp16)
                               .Pool()
                               .Dense("hidden", 200, true)
                               .Dense("head", 100, false)
                               .Build();
  Pipeline pipeline(model, {});
  pipeline.Initialise(7);
  const auto weights = pipeline.Weights();
  const auto deviation = [&](const std::string& name) {
    double sum = 0;
    double squares = 0;
    const std::vector<float> values = Floats(weights.at(name));
    for (const double value : values) {
      sum += value;
      squares += value * value;
    }
    const double size = static_cast<double>(values.size());
    EXPECT_NEAR(sum / size, 0, 5 * std::sqrt(squares / size) / std::sqrt(size)) << name;
    return std::sqrt(squares / size);
  };
  const double before_activation = std::sqrt(2.0);
  const auto expect = [&](const std::string& name, double gain, double fan_out) {
    EXPECT_NEAR(deviation(name) * std::sqrt(fan_out), gain, 0.06 * gain) << name;
  };
  expect("wide.conv1.weight", before_activation, 64 * 9);
  expect("wide.conv2.weight", before_activation, 64 * 9);
  expect("boundaries.wide.compressor.weight", 1, 32);
  expect("boundaries.wide.low_dim_conv1.weight", before_activation, 32 * 9);
  expect("boundaries.wide.low_dim_conv2.weight", 1, 32 * 9);
  expect("boundaries.wide.expander.weight", 1, 64);
  expect("boundaries.wide.shortcut_recon.weight", 1, 64);
  expect("hidden.weight", before_activation, 200);
  expect("head.weight", 1, 100);
  for (const auto& [name, bytes] : weights) {
    const bool bias = name.size() > 5 && name.substr(name.size() - 5) == ".bias";
    const bool norm = name.find("norm") != std::string::npos;
    if (!bias && !norm) continue;
    for (const float value : Floats(bytes)) EXPECT_EQ(value, bias ? 0 : 1) << name;
  }
}

TEST(StageModel, SavedWeightsLoadBackBitForBit) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, MomentumSgd());
  Pipeline whole(model, {});
  whole.Initialise(1);
  const Batch batch = MakeBatch(model, 4, 2, 1);
  whole.Apply(whole.Compute(batch, Order::kGpipe), 0, 0.1);
  const std::string saved = *whole.stages()[0]->SaveWeights();
  Pipeline other(model, {1});
  other.Initialise(2);
  other.Apply(other.Compute(batch, Order::kGpipe), 0, 0.1);
  // Takes its own, ignores the rest, forgets the optimizer's past.
  other.LoadWeights(saved);
  EXPECT_TRUE(other.Weights() == whole.Weights());
  Pipeline fresh(model, {});
  fresh.LoadWeights(saved);
  for (Pipeline* pipeline : {&other, &fresh}) pipeline->Apply(pipeline->Compute(batch, Order::kGpipe), 0, 0.1);
  EXPECT_TRUE(other.Weights() == fresh.Weights());
}

TEST(StageModel, APartOfTheWeightsMayComeFromAFileAndTheRestFromTheSeed) {
  const StageSpec spec = Cut(SmallResnet(WireCodec::kFp32, MomentumSgd()), {})[0];
  const std::unique_ptr<StageModel> other = Make(spec);
  ASSERT_TRUE(other->Initialise(77).ok());
  const std::string saved = *other->SaveWeights();
  SafetensorsFile file = *ParseSafetensors(saved);
  SafetensorsFile part;
  for (const SafetensorsEntry& entry : file.tensors) {
    if (entry.name.rfind("boundaries.", 0) != 0) part.tensors.push_back(entry);
  }
  part.tensors.push_back({"extra", "F32", {1}, std::string_view("\0\0\0\0", 4)});
  const std::string shard = *SerializeSafetensors(part);

  const std::unique_ptr<StageModel> stage = Make(spec);
  ExpectError(stage->Restore(shard, std::nullopt).status(), absl::StatusCode::kInvalidArgument,
              {"stage 0", "the weights have no \"boundaries.stem."});
  const auto report = stage->Restore(shard, 5);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->unused_tensors, std::vector<std::string>{"extra"});
  EXPECT_EQ(report->seeded_parameters.size(), file.tensors.size() + 1 - part.tensors.size());
  EXPECT_EQ(report->seeded_parameters.front(), "boundaries.stem.compressor.weight");
  const std::unique_ptr<StageModel> seeded = Make(spec);
  ASSERT_TRUE(seeded->Initialise(5).ok());
  const auto from_seed = BytesByName(*seeded->SaveWeights());
  const auto from_file = BytesByName(saved);
  for (const auto& [name, bytes] : BytesByName(*stage->SaveWeights())) {
    EXPECT_EQ(bytes, (name.rfind("boundaries.", 0) == 0 ? from_seed : from_file).at(name)) << name;
  }
}

TEST(StageModel, WeightsThatDoNotFitChangeNothing) {
  const std::unique_ptr<StageModel> stage = Make(Cut(SmallResnet(WireCodec::kFp16, MomentumSgd()), {})[0]);
  const std::unique_ptr<StageModel> mlp = Make(Cut(SmallMlp(WireCodec::kFp16, MomentumSgd()), {})[0]);
  const std::string before = *stage->SaveWeights();
  ExpectError(stage->LoadWeights(*mlp->SaveWeights()), absl::StatusCode::kInvalidArgument,
              {"stage 0", "stem.conv.weight"});
  ExpectError(stage->LoadWeights("not a file"), absl::StatusCode::kInvalidArgument, {"stage 0"});
  // The last tensor has another shape.
  const WholeModel wider = ModelBuilder({2, 4, 4})
                               .FlattenAll()
                               .Dense("hidden0", 24, true)
                               .Dense("hidden1", 16, true)
                               .Dense("head", 6, false)
                               .Build();
  const std::string mlp_before = *mlp->SaveWeights();
  ExpectError(mlp->LoadWeights(*Make(Cut(wider, {})[0])->SaveWeights()), absl::StatusCode::kInvalidArgument,
              {"head.weight", "[5, 16]", "[6, 16]"});
  EXPECT_EQ(*stage->SaveWeights(), before);
  EXPECT_EQ(*mlp->SaveWeights(), mlp_before);
}

TEST(StageModel, EvaluationBetweenStepsLeavesNoTrace) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, MomentumSgd());
  const auto train = [&](bool evaluate) {
    Pipeline pipeline(model, {0, 2});
    pipeline.Initialise(1);
    for (int step = 0; step < 3; ++step) {
      if (evaluate) pipeline.EvaluateLoss(MakeBatch(model, 10, 5, 77));
      const StepResult result =
          pipeline.Compute(MakeBatch(model, 8, 3, static_cast<std::uint32_t>(step)), Order::kOneFOneB);
      const auto gradients = pipeline.Gradients();
      if (evaluate) pipeline.EvaluateLoss(MakeBatch(model, 7, 1, 78));
      EXPECT_TRUE(pipeline.Gradients() == gradients);
      for (const auto& stage : pipeline.stages()) EXPECT_EQ(stage->live_graphs(), 0);
      pipeline.Apply(result, 0, 0.1);
    }
    return pipeline.Weights();
  };
  EXPECT_TRUE(train(true) == train(false));
}

TEST(StageModel, EvaluationMayComeBetweenForwardAndBackward) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, MomentumSgd());
  const Batch batch = MakeBatch(model, 4, 1, 1);
  const auto gradients = [&](bool evaluate) {
    const std::unique_ptr<StageModel> stage = Make(Cut(model, {})[0]);
    EXPECT_TRUE(stage->Forward(0, {batch.images[0]}, &batch.labels[0]).ok());
    if (evaluate) {
      EXPECT_TRUE(stage->Evaluate({batch.images[0]}, &batch.labels[0]).ok());
    }
    EXPECT_TRUE(stage->Backward(0, {}).ok());
    return *stage->SaveGradients();
  };
  EXPECT_EQ(gradients(true), gradients(false));
}

TEST(StageModel, MemoryReturnsToItsBaselineEveryStep) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, AdamWOptions());
  Pipeline pipeline(model, {0, 1, 2});
  pipeline.Initialise(1);
  std::uint64_t baseline = 0;
  for (int step = 0; step < 100; ++step) {
    {
      const Batch batch = MakeBatch(model, 8, 5, static_cast<std::uint32_t>(step));
      const StepResult result = pipeline.Compute(batch, Order::kOneFOneB);
      for (std::size_t s = 0; s < 4; ++s) EXPECT_LE(result.peak_graphs[s], 4 - static_cast<int>(s));
      EXPECT_EQ(result.peak_graphs[0], 4);
      pipeline.Apply(result, 1, 0.001);
    }
    const std::uint64_t live = pipeline.stages()[0]->Memory().live_bytes;
    if (step == 1) baseline = live;
    if (step > 1) {
      EXPECT_EQ(live, baseline) << "step " << step;
    }
  }
}

TEST(StageModel, ApplyingAStepAllocatesNoTensors) {
  for (const OptimizerOptions& optimizer : {OptimizerOptions(MomentumSgd()), OptimizerOptions(AdamWOptions()),
                                            OptimizerOptions(MuonOptions())}) {
    const WholeModel model = SmallResnet(WireCodec::kFp16, optimizer);
    const std::unique_ptr<StageModel> stage = Make(Cut(model, {})[0]);
    const Batch batch = MakeBatch(model, 4, 1, 1);
    ASSERT_TRUE(stage->Forward(0, {batch.images[0]}, &batch.labels[0]).ok());
    ASSERT_TRUE(stage->Backward(0, {}).ok());
    stage->ResetPeakMemory();
    const MemoryUse before = stage->Memory();
    ASSERT_TRUE(stage->ApplyStep(0.25f, 0.1).ok());
    std::uint64_t allowed = 64;  // operands that are numbers
    // The accumulator of the product that makes the largest matrix, group1.0.conv2.
    if (std::holds_alternative<MuonOptions>(optimizer)) allowed += 4 * 16 * 144 + 128;
    EXPECT_LE(stage->Memory().peak_bytes, before.peak_bytes + allowed);
    EXPECT_EQ(stage->Memory().live_bytes, before.live_bytes);
  }
}

TEST(StageModel, MuonHoldsLessThanAdamWAndTheSpaceOfItsLargestMatrix) {
  const StageSpec spec = Cut(SmallResnet(WireCodec::kFp16, MuonOptions()), {})[0];
  const std::unique_ptr<StageModel> stage = Make(spec);
  std::uint64_t expected = 0;
  for (const ParameterInfo& info : stage->parameters()) {
    const bool adamw = info.shape.size() < 2 || info.name.rfind("stem.", 0) == 0 || info.name.rfind("head.", 0) == 0;
    expected += (adamw ? 8 : 4) * info.size;
  }
  // group1.0.conv2: 16 x 144; its A is 16 x 16. Two of each in bfloat16.
  expected += 2 * 2 * (16 * 144 + 16 * 16);
  EXPECT_EQ(stage->Memory().optimizer_bytes, expected);
}

TEST(StageModel, MemoryIsSplitIntoItsParts) {
  const StageSpec spec = Cut(SmallResnet(WireCodec::kFp16, AdamWOptions()), {})[0];
  const std::unique_ptr<StageModel> stage = Make(spec);
  std::uint64_t values = 0;
  for (const ParameterInfo& info : stage->parameters()) values += info.size;
  const MemoryUse memory = stage->Memory();
  EXPECT_EQ(memory.weights_bytes, 4 * values);
  EXPECT_EQ(memory.gradients_bytes, 4 * values);
  EXPECT_EQ(memory.optimizer_bytes, 8 * values);
  EXPECT_GE(memory.live_bytes, 16 * values);
  EXPECT_GE(memory.peak_bytes, memory.live_bytes);
}

TEST(StageModel, OutOfMemoryIsATypedErrorAndTheStageLivesOn) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, MomentumSgd());
  const StageSpec spec = Cut(model, {})[0];
  const std::uint64_t held = Make(spec)->Memory().live_bytes;  // nothing else is alive in this test
  ComputeOptions options;
  options.memory_limit_bytes = held + 400'000;
  const auto stage = StageModel::Create(spec, options);
  ASSERT_TRUE(stage.ok()) << stage.status();
  ASSERT_TRUE((*stage)->Initialise(1).ok());
  const Batch large = MakeBatch(model, 64, 1, 1);
  ExpectError((*stage)->Forward(0, {large.images[0]}, &large.labels[0]).status(), absl::StatusCode::kResourceExhausted,
              {"stage 0", "Forward", "fewer samples per micro-batch", "smaller window"});
  EXPECT_EQ((*stage)->live_graphs(), 0);
  const Batch small = MakeBatch(model, 1, 1, 1);
  EXPECT_TRUE((*stage)->Forward(0, {small.images[0]}, &small.labels[0]).ok());
  EXPECT_TRUE((*stage)->Backward(0, {}).ok());
  options.memory_limit_bytes = 1000;
  ExpectError(StageModel::Create(spec, options).status(), absl::StatusCode::kResourceExhausted, {"stage 0"});
  options.memory_limit_bytes = 0;
  EXPECT_TRUE(StageModel::Create(spec, options).ok());
}

TEST(StageModel, DropStepForgetsGraphsAndGradientsButNotWeights) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, MomentumSgd());
  const std::unique_ptr<StageModel> stage = Make(Cut(model, {})[0]);
  const std::string weights = *stage->SaveWeights();
  const Batch batch = MakeBatch(model, 4, 2, 1);
  for (int m = 0; m < 2; ++m) ASSERT_TRUE(stage->Forward(m, {batch.images[m]}, &batch.labels[m]).ok());
  ASSERT_TRUE(stage->Backward(0, {}).ok());
  EXPECT_EQ(stage->live_graphs(), 1);
  stage->DropStep();
  EXPECT_EQ(stage->live_graphs(), 0);
  const std::vector<double> norms = *stage->SquaredNorms();
  EXPECT_EQ(norms.size(), stage->parameters().size());
  for (const double norm : norms) EXPECT_EQ(norm, 0);
  EXPECT_EQ(*stage->SaveWeights(), weights);
  // As if nothing had been: the same gradients as a stage that never dropped.
  const std::unique_ptr<StageModel> other = Make(Cut(model, {})[0]);
  for (StageModel* one : {stage.get(), other.get()}) {
    ASSERT_TRUE(one->Forward(0, {batch.images[0]}, &batch.labels[0]).ok());
    ASSERT_TRUE(one->Backward(0, {}).ok());
  }
  EXPECT_EQ(*stage->SaveGradients(), *other->SaveGradients());
}

TEST(StageModel, SquaredNormsAreSumsInDoublePerParameter) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, MomentumSgd());
  const std::unique_ptr<StageModel> stage = Make(Cut(model, {})[0]);
  const Batch batch = MakeBatch(model, 4, 1, 1);
  ASSERT_TRUE(stage->Forward(0, {batch.images[0]}, &batch.labels[0]).ok());
  ASSERT_TRUE(stage->Backward(0, {}).ok());
  const auto gradients = BytesByName(*stage->SaveGradients());
  const std::vector<double> norms = *stage->SquaredNorms();
  for (std::size_t i = 0; i < norms.size(); ++i) {
    double expected = 0;
    for (const double value : Floats(gradients.at(stage->parameters()[i].name))) expected += value * value;
    EXPECT_NEAR(norms[i], expected, 1e-12 * expected) << stage->parameters()[i].name;
    EXPECT_GT(norms[i], 0) << stage->parameters()[i].name;
  }
}

TEST(StageModel, ReportsLossWeightAndCorrectAnswers) {
  const WholeModel model = SmallMlp(WireCodec::kFp32, MomentumSgd());
  const std::unique_ptr<StageModel> stage = Make(Cut(model, {})[0]);
  const Batch batch = MakeBatch(model, 20, 1, 1);
  for (int step = 0; step < 300; ++step) {
    ASSERT_TRUE(stage->Forward(step, {batch.images[0]}, &batch.labels[0]).ok());
    ASSERT_TRUE(stage->Backward(step, {}).ok());
    ASSERT_TRUE(stage->ApplyStep(1 / 20.0f, 0.05).ok());
  }
  const ForwardResult result = *stage->Evaluate({batch.images[0]}, &batch.labels[0]);
  EXPECT_EQ(result.weight, 20);
  EXPECT_EQ(result.metric_sums, std::vector<double>{20});  // learnt by heart
  EXPECT_LT(result.loss_sum, 2);
  EXPECT_TRUE(result.activations.empty());
  EXPECT_TRUE(result.non_finite.empty());
}

TEST(StageModel, WorksFromAnyOneThreadAtATime) {
  const WholeModel model = SmallResnet(WireCodec::kFp16, MomentumSgd());
  const Batch batch = MakeBatch(model, 4, 1, 1);
  const auto step = [&](StageModel& stage) {
    EXPECT_TRUE(stage.Forward(0, {batch.images[0]}, &batch.labels[0]).ok());
    EXPECT_TRUE(stage.Backward(0, {}).ok());
    EXPECT_TRUE(stage.ApplyStep(0.25f, 0.1).ok());
  };
  const std::unique_ptr<StageModel> here = Make(Cut(model, {})[0]);
  const std::unique_ptr<StageModel> there = Make(Cut(model, {})[0]);
  step(*here);
  std::thread thread([&] { step(*there); });
  thread.join();
  EXPECT_EQ(*here->SaveWeights(), *there->SaveWeights());
}

TEST(StageModel, ResolvesDevices) {
  EXPECT_EQ(*StageModel::ResolveDevice("cpu"), "cpu");
  EXPECT_TRUE(StageModel::ResolveDevice("auto").ok());
  ExpectError(StageModel::ResolveDevice("cuda:999").status(), absl::StatusCode::kFailedPrecondition, {"cuda:999"});
  ExpectError(StageModel::ResolveDevice("tpu").status(), absl::StatusCode::kInvalidArgument, {"tpu"});
  ExpectError(StageModel::ResolveDevice("cuda:x").status(), absl::StatusCode::kInvalidArgument, {"cuda:x"});
  ExpectError(StageModel::ResolveDevice("cuda:-1").status(), absl::StatusCode::kInvalidArgument, {"cuda:-1"});
  EXPECT_NE(StageModel::LibTorchVersion().find('.'), std::string::npos);
  EXPECT_FALSE(StageModel::CpuCapability().empty());
}

}  // namespace
}  // namespace resbm::model
