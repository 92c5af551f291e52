// What a stage refuses, and what it reports of values that are not finite.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "model/stage_model.h"
#include "proto/base/safetensors.h"
#include "tests/model/support/models.h"
#include "tests/model/support/pipeline.h"

namespace resbm::model {
namespace {

WholeModel Model(WireCodec codec = WireCodec::kFp16) { return SmallResnet(codec, SgdOptions()); }

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

void ExpectInvalid(const absl::Status& status, const std::vector<std::string>& parts) {
  ExpectError(status, absl::StatusCode::kInvalidArgument, parts);
}

void ExpectSpecRefused(const StageSpec& spec, const std::vector<std::string>& parts) {
  ExpectInvalid(StageModel::Create(spec, ComputeOptions()).status(), parts);
}

// fp32 values, all `value`.
EncodedTensor Filled(const std::vector<std::int64_t>& dims, float value) {
  std::int64_t size = 1;
  for (const std::int64_t dim : dims) size *= dim;
  const std::vector<float> values(static_cast<std::size_t>(size), value);
  EncodedTensor encoded;
  encoded.dims = dims;
  encoded.payload = SharedBytes::CopyOf({reinterpret_cast<const char*>(values.data()), values.size() * 4});
  return encoded;
}

TEST(StageSpecCheck, NamesTheLayerAndBothShapes) {
  StageSpec spec = Cut(Model(), {})[0];
  spec.layers[1].input_shape = {16, 12, 12};
  ExpectSpecRefused(spec, {"stage 0", "group0.0", "[8, height, width]", "[16, 12, 12]"});
  spec = Cut(Model(), {})[0];
  spec.layers[2].output_shape = {8, 6, 6};
  ExpectSpecRefused(spec, {"group0.1", "[8, 12, 12]", "[8, 6, 6]"});
  spec = Cut(Model(), {})[0];
  spec.boundaries[0].wire[0].shape = {4, 12, 12};
  ExpectSpecRefused(spec, {"boundary \"stem\"", "[2, 12, 12]", "[4, 12, 12]"});
  spec = Cut(Model(), {})[0];
  spec.input_shape = {1, 28, 28};
  ExpectSpecRefused(spec, {"stem", "[1, 28, 28]", "[1, 12, 12]"});
}

TEST(StageSpecCheck, RefusesGroupsThatDoNotDivide) {
  StageSpec spec = Cut(Model(), {})[0];
  std::get<ResidualBlock>(spec.layers[1].kind).norm_groups = 3;
  ExpectSpecRefused(spec, {"group0.0", "3 groups", "8 channels"});
  spec = Cut(Model(), {})[0];
  spec.boundaries[1].norm_groups = 3;
  ExpectSpecRefused(spec, {"group0.0", "3 groups", "4 channels"});
}

TEST(StageSpecCheck, RefusesImpossibleNumbers) {
  StageSpec spec = Cut(Model(), {})[0];
  std::get<ConvStem>(spec.layers[0].kind).stride = 0;
  ExpectSpecRefused(spec, {"stem", "stride"});
  spec = Cut(Model(), {})[0];
  std::get<ConvStem>(spec.layers[0].kind).kernel = 4;
  ExpectSpecRefused(spec, {"stem", "kernel 4"});
  spec = Cut(Model(), {})[0];
  spec.layers[0].input_shape = {1, -12, 12};
  ExpectSpecRefused(spec, {"stem", "[1, -12, 12]"});
  spec = Cut(Model(), {})[0];
  spec.input_std = {0};
  ExpectSpecRefused(spec, {"standard deviation"});
  spec = Cut(Model(), {})[0];
  spec.layers.clear();
  ExpectSpecRefused(spec, {"no layers"});
  spec = Cut(Model(), {})[0];
  spec.boundaries[0].wire[0].gradient_codec = WireCodec::kRaw;
  ExpectSpecRefused(spec, {"stem", "codecs"});
  spec = Cut(Model(), {})[0];
  spec.boundaries[0].wire.clear();
  ExpectSpecRefused(spec, {"stem", "one tensor"});
  SgdOptions sgd;
  sgd.nesterov = true;
  spec = Cut(SmallResnet(WireCodec::kFp16, sgd), {})[0];
  ExpectSpecRefused(spec, {"nesterov"});
  MuonOptions muon;
  muon.ns_steps = 100;
  ExpectSpecRefused(Cut(SmallResnet(WireCodec::kFp16, muon), {})[0], {"muon", "ns_steps 100"});
  muon = MuonOptions();
  muon.adamw.beta1 = 1;
  ExpectSpecRefused(Cut(SmallResnet(WireCodec::kFp16, muon), {})[0], {"muon.adamw", "beta1 1"});
}

TEST(StageSpecCheck, WantsBoundariesWhereTheStageBeginsAndEnds) {
  std::vector<StageSpec> specs = Cut(Model(), {1});
  StageSpec spec = specs[0];
  spec.boundaries.pop_back();
  ExpectSpecRefused(spec, {"stage 0", "no boundary after its last layer \"group0.0\""});
  spec = specs[1];
  spec.boundaries.erase(spec.boundaries.begin());
  ExpectSpecRefused(spec, {"stage 1", "no boundary before its first layer \"group0.1\""});
  spec = specs[1];
  std::swap(spec.boundaries[1], spec.boundaries[2]);
  ExpectSpecRefused(spec, {"stage 1", "out of order"});
  spec = specs[1];
  spec.layers.erase(spec.layers.begin() + 1);
  ExpectSpecRefused(spec, {"stage 1", "index"});
}

TEST(StageErrors, NothingRunsBeforeThereAreWeights) {
  const WholeModel model = Model();
  const auto stage = StageModel::Create(Cut(model, {})[0], ComputeOptions());
  ASSERT_TRUE(stage.ok());
  const Batch batch = MakeBatch(model, 2, 1, 1);
  for (const absl::Status& status :
       {(*stage)->Forward(0, {batch.images[0]}, &batch.labels[0]).status(), (*stage)->Backward(0, {}).status(),
        (*stage)->SquaredNorms().status(), (*stage)->ApplyStep(1, 0.1), (*stage)->SaveWeights().status(),
        (*stage)->Evaluate({batch.images[0]}, &batch.labels[0]).status()}) {
    ExpectError(status, absl::StatusCode::kFailedPrecondition, {"stage 0", "no weights"});
  }
  (*stage)->DropStep();
}

TEST(StageErrors, RefusesInputsOtherThanExpected) {
  const WholeModel model = Model();
  const std::vector<StageSpec> specs = Cut(model, {1});
  const std::unique_ptr<StageModel> first = Make(specs[0]);
  const std::unique_ptr<StageModel> last = Make(specs[1]);
  const Batch batch = MakeBatch(model, 3, 1, 1);

  EncodedTensor image = batch.images[0];
  image.dims = {3, 1, 6, 24};
  ExpectInvalid(first->Forward(0, {image}, nullptr).status(), {"images", "[samples, 1, 12, 12]", "[3, 1, 6, 24]"});
  image.dims = {0, 1, 12, 12};
  ExpectInvalid(first->Forward(0, {image}, nullptr).status(), {"images", "[0, 1, 12, 12]"});
  image.dims = {4, 1, 12, 12};
  ExpectInvalid(first->Forward(0, {image}, nullptr).status(), {"images", "bytes"});
  image = batch.images[0];
  image.dtype = WireDtype::kInt64;
  ExpectInvalid(first->Forward(0, {image}, nullptr).status(), {"images", "uint8", "int64"});
  ExpectInvalid(first->Forward(0, {batch.images[0]}, &batch.labels[0]).status(), {"only the last stage"});

  const EncodedTensor activation = first->Forward(0, {batch.images[0]}, nullptr)->activations.at(0);
  EXPECT_EQ(activation.dims, (std::vector<std::int64_t>{3, 4, 12, 12}));
  EncodedTensor wrong = activation;
  wrong.codec = WireCodec::kBf16;
  wrong.dtype = WireDtype::kBfloat16;
  ExpectInvalid(last->Forward(0, {wrong}, &batch.labels[0]).status(), {"stage 1", "group0.0", "float16", "bfloat16"});
  wrong = activation;
  wrong.dims = {3, 8, 12, 12};
  ExpectInvalid(last->Forward(0, {wrong}, &batch.labels[0]).status(), {"[samples, 4, 12, 12]", "[3, 8, 12, 12]"});
  ExpectInvalid(last->Forward(0, {activation}, nullptr).status(), {"stage 1", "labels"});
  EncodedTensor labels = batch.labels[0];
  labels.dims = {1};
  labels.payload = SharedBytes(labels.payload.owner(), labels.payload.data(), 8);
  ExpectInvalid(last->Forward(0, {activation}, &labels).status(), {"labels", "[3]", "[1]"});
  const std::int64_t bad[3] = {0, 5, 1};
  labels = batch.labels[0];
  labels.payload = SharedBytes::CopyOf({reinterpret_cast<const char*>(bad), sizeof(bad)});
  ExpectInvalid(last->Forward(0, {activation}, &labels).status(), {"label 5", "5 classes"});
  EXPECT_EQ(last->live_graphs(), 0);
  EXPECT_TRUE(last->Forward(0, {activation}, &batch.labels[0]).ok());
}

TEST(StageErrors, RefusesAMicroBatchTwice) {
  const WholeModel model = Model();
  const std::unique_ptr<StageModel> stage = Make(Cut(model, {})[0]);
  const Batch batch = MakeBatch(model, 2, 1, 1);
  ASSERT_TRUE(stage->Forward(7, {batch.images[0]}, &batch.labels[0]).ok());
  ExpectInvalid(stage->Forward(7, {batch.images[0]}, &batch.labels[0]).status(), {"micro-batch 7"});
  ExpectInvalid(stage->Backward(8, {}).status(), {"micro-batch 8"});
  ExpectError(stage->ApplyStep(1, 0.1), absl::StatusCode::kFailedPrecondition, {"not taken backward", "7"});
  ASSERT_TRUE(stage->Backward(7, {}).ok());
  ExpectInvalid(stage->Backward(7, {}).status(), {"micro-batch 7"});
}

TEST(StageErrors, RefusesAGradientOtherThanExpected) {
  const WholeModel model = Model(WireCodec::kFp32);
  const std::unique_ptr<StageModel> stage = Make(Cut(model, {1})[0]);
  const Batch batch = MakeBatch(model, 3, 1, 1);
  ASSERT_TRUE(stage->Forward(0, {batch.images[0]}, nullptr).ok());
  ExpectInvalid(stage->Backward(0, {}).status(), {"gradient", "group0.0"});
  const EncodedTensor other_samples = Filled({2, 4, 12, 12}, 1);
  ExpectInvalid(stage->Backward(0, {other_samples}).status(), {"[3, 4, 12, 12]", "[2, 4, 12, 12]"});
  EncodedTensor bytes = Filled({3, 4, 12, 12}, 1);
  bytes.payload = SharedBytes(bytes.payload.owner(), bytes.payload.data(), bytes.payload.size() - 1);
  ExpectInvalid(stage->Backward(0, {bytes}).status(), {"bytes"});
  // A refusal changes nothing: the graph is still there.
  const EncodedTensor good = Filled({3, 4, 12, 12}, 1);
  EXPECT_TRUE(stage->Backward(0, {good}).ok());
}

TEST(StageErrors, AStepThatIsNotFiniteIsNotApplied) {
  const std::unique_ptr<StageModel> stage = Make(Cut(Model(), {})[0]);
  const std::string weights = *stage->SaveWeights();
  ExpectInvalid(stage->ApplyStep(std::numeric_limits<float>::quiet_NaN(), 0.1), {"skipped"});
  ExpectInvalid(stage->ApplyStep(1, std::numeric_limits<double>::infinity()), {"skipped"});
  EXPECT_EQ(*stage->SaveWeights(), weights);
}

TEST(NonFinite, AnOverflowingActivationIsCountedWhereItArises) {
  const WholeModel model = Model();
  Pipeline pipeline(model, {0, 1, 2});
  pipeline.Initialise(1);
  // The third stage's encoder sends infinity: z = compressor(x), with a weight that overflows.
  const std::string saved = *pipeline.stages()[2]->SaveWeights();
  SafetensorsFile file = *ParseSafetensors(saved);
  std::vector<float> huge;
  for (SafetensorsEntry& entry : file.tensors) {
    if (entry.name != "boundaries.group0_1.compressor.weight") continue;
    huge.assign(entry.data.size() / 4, 3e38f);
    entry.data = {reinterpret_cast<const char*>(huge.data()), entry.data.size()};
  }
  ASSERT_FALSE(huge.empty());
  ASSERT_TRUE(pipeline.stages()[2]->LoadWeights(*SerializeSafetensors(file)).ok());
  const Batch batch = MakeBatch(model, 2, 1, 1);
  EncodedTensor x = batch.images[0];
  for (std::size_t s = 0; s < 3; ++s) {
    const ForwardResult result = *pipeline.stages()[s]->Forward(0, {x}, nullptr);
    x = result.activations.at(0);
    if (s < 2) {
      EXPECT_TRUE(result.non_finite.empty());
      continue;
    }
    ASSERT_EQ(result.non_finite.size(), 1u);
    EXPECT_EQ(result.non_finite[0].where, "group0.1 activation");
    EXPECT_GT(result.non_finite[0].count, 0u);
    EXPECT_EQ(x.non_finite, result.non_finite[0].count);
  }
  const ForwardResult last = *pipeline.stages()[3]->Forward(0, {x}, &batch.labels[0]);
  ASSERT_EQ(last.non_finite.size(), 2u);  // what it sends on through an uncut boundary, and the loss
  EXPECT_EQ(last.non_finite[0].where, "group1.0 activation");
  EXPECT_EQ(last.non_finite[1].where, "loss");
}

TEST(NonFinite, InfinityOnlyInTheSecondStagesGradientNamesItsBoundary) {
  const WholeModel model = Model(WireCodec::kFp32);
  Pipeline pipeline(model, {0, 1});
  pipeline.Initialise(1);
  const Batch batch = MakeBatch(model, 2, 1, 1);
  const ForwardResult first = *pipeline.stages()[0]->Forward(0, {batch.images[0]}, nullptr);
  const ForwardResult second = *pipeline.stages()[1]->Forward(0, first.activations, nullptr);
  EXPECT_TRUE(second.non_finite.empty());
  // Finite itself, its backward overflows.
  const EncodedTensor gradient = Filled(second.activations.at(0).dims, 3e38f);
  const BackwardResult backward = *pipeline.stages()[1]->Backward(0, {gradient});
  ASSERT_EQ(backward.non_finite.size(), 1u);
  EXPECT_EQ(backward.non_finite[0].where, "stem gradient");
  EXPECT_EQ(backward.gradients.at(0).non_finite, backward.non_finite[0].count);
  // The step is dropped everywhere; weights are as before.
  const auto weights = pipeline.Weights();
  for (auto& stage : pipeline.stages()) stage->DropStep();
  EXPECT_TRUE(pipeline.Weights() == weights);
  for (auto& stage : pipeline.stages()) {
    const std::vector<double> norms = *stage->SquaredNorms();
    for (const double norm : norms) EXPECT_EQ(norm, 0);
  }
}

TEST(NonFinite, CountsAreTheSameWhetherCutOrNot) {
  const WholeModel model = Model();
  const auto counts = [&](const std::vector<int>& cuts) {
    Pipeline pipeline(model, cuts);
    pipeline.Initialise(1);
    const Batch batch = MakeBatch(model, 4, 2, 1);
    // A rate that throws the weights far out: the second step overflows.
    pipeline.Apply(pipeline.Compute(batch, Order::kGpipe), 0, 1e30);
    std::map<std::string, std::uint64_t> sums;
    for (const NonFiniteCount& count : pipeline.Compute(batch, Order::kGpipe).non_finite) {
      sums[count.where] += count.count;
    }
    return sums;
  };
  const auto whole = counts({});
  EXPECT_FALSE(whole.empty());
  EXPECT_EQ(counts({1}), whole);
  EXPECT_EQ(counts({0, 1, 2, 3}), whole);
}

}  // namespace
}  // namespace resbm::model
