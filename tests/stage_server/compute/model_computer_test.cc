// Work on a real StageModel (an mlp of one layer a stage) and on one that fails as told.
#include "stage_server/compute/model_computer.h"

#include <cstring>
#include <stdexcept>

#include <gtest/gtest.h>

#include "proto/base/safetensors.h"
#include "tests/stage_server/support/specs.h"

namespace resbm::stage_server::testing {
namespace {

// The whole of a model in one stage: a 2x2 grey image, flattened, 4 -> 4 classes.
v1::StageSpec OneStage() {
  v1::StageSpec spec = MakeSpec(0, 1);
  spec.mutable_layers(0)->set_index(1);
  v1::LayerSpec flatten;
  flatten.set_name("flatten");
  flatten.mutable_flatten();
  for (std::int64_t dim : {1, 2, 2}) flatten.add_input_shape(dim);
  flatten.add_output_shape(kWidth);
  *spec.add_layers() = flatten;
  spec.mutable_layers()->SwapElements(0, 1);
  *spec.mutable_input_shape() = flatten.input_shape();
  spec.add_input_mean(0.5f);
  spec.add_input_std(0.25f);
  return spec;
}

EncodedTensor Images(std::int64_t samples) {
  EncodedTensor tensor;
  tensor.codec = WireCodec::kRaw;
  tensor.dtype = WireDtype::kUint8;
  tensor.dims = {samples, 1, 2, 2};
  std::string bytes;
  for (std::int64_t i = 0; i < samples * kWidth; ++i) bytes += static_cast<char>(17 * i);
  tensor.payload = SharedBytes::CopyOf(bytes);
  return tensor;
}
EncodedTensor Labels(std::int64_t samples) {
  EncodedTensor tensor;
  tensor.codec = WireCodec::kRaw;
  tensor.dtype = WireDtype::kInt64;
  tensor.dims = {samples};
  std::string bytes;
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t label = i % kWidth;
    bytes.append(reinterpret_cast<const char*>(&label), sizeof(label));
  }
  tensor.payload = SharedBytes::CopyOf(bytes);
  return tensor;
}

std::string Saved(ModelComputer& computer) {
  const WorkResult result = computer.Run(SaveShard{});
  EXPECT_TRUE(result.status.ok()) << result.status;
  return result.status.ok() ? *result.shard : "";
}

TEST(ModelComputer, TrainsAStepAndSkipsAnother) {
  ModelComputer computer({});
  const WorkResult loaded = computer.Run(Load{OneStage(), std::uint64_t{7}});
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  ASSERT_EQ(loaded.parameters.size(), 2u);
  EXPECT_EQ(loaded.parameters[0].name, "fc0.weight");
  EXPECT_EQ(loaded.parameters[0].values, 16u);
  EXPECT_EQ(loaded.memory.weights_bytes, 80u);
  EXPECT_EQ(loaded.memory.gradients_bytes, 80u);
  EXPECT_EQ(loaded.memory.optimizer_bytes, 80u);
  const std::string before = Saved(computer);

  const auto forward_and_backward = [&] {
    for (std::uint32_t mb : {0, 1}) {
      const WorkResult forward = computer.Run(Forward{mb, {Images(3)}, Labels(3)});
      ASSERT_TRUE(forward.status.ok()) << forward.status;
      EXPECT_EQ(forward.weight, 3);
      EXPECT_GT(forward.loss_sum, 0);
      ASSERT_EQ(forward.metric_sums.size(), 1u);
      const WorkResult backward = computer.Run(Backward{mb, {}});
      ASSERT_TRUE(backward.status.ok()) << backward.status;
      EXPECT_TRUE(backward.outputs.empty());
    }
    const WorkResult finished = computer.Run(Finish{});
    ASSERT_TRUE(finished.status.ok()) << finished.status;
    ASSERT_EQ(finished.squared_norms.size(), 2u);
    EXPECT_GT(finished.squared_norms[0], 0);
  };
  forward_and_backward();
  ASSERT_TRUE(computer.Run(Drop{}).status.ok());
  EXPECT_EQ(Saved(computer), before) << "a skipped step leaves the weights";
  forward_and_backward();
  ASSERT_TRUE(computer.Run(Apply{1.0f / 6, 0.1}).status.ok());
  EXPECT_NE(Saved(computer), before);
}

TEST(ModelComputer, EvaluatesWithoutTouchingTheWeights) {
  ModelComputer computer({});
  ASSERT_TRUE(computer.Run(Load{OneStage(), std::uint64_t{7}}).status.ok());
  const std::string before = Saved(computer);
  const WorkResult result = computer.Run(EvaluateForward{0, {Images(5)}, Labels(5)});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.weight, 5);
  EXPECT_EQ(Saved(computer), before);
}

TEST(ModelComputer, RestoresWhatItSaved) {
  ModelComputer first({});
  ASSERT_TRUE(first.Run(Load{OneStage(), std::uint64_t{7}}).status.ok());
  const auto shard = std::make_shared<const std::string>(Saved(first));
  ModelComputer second({});
  ASSERT_TRUE(second.Run(Load{OneStage(), shard}).status.ok());
  EXPECT_EQ(Saved(second), *shard);
  const WorkResult bad = second.Run(Load{OneStage(), std::make_shared<const std::string>("no safetensors")});
  EXPECT_EQ(bad.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(second.Run(SaveShard{}).status.code(), absl::StatusCode::kFailedPrecondition) << "nothing half-loaded stays";
}

TEST(ModelComputer, TakesThePartThatAFileHas) {
  ModelComputer first({});
  ASSERT_TRUE(first.Run(Load{OneStage(), std::uint64_t{7}}).status.ok());
  const std::string saved = Saved(first);
  SafetensorsFile file = *ParseSafetensors(saved);
  const std::string dropped = file.tensors.front().name;
  file.tensors.erase(file.tensors.begin());
  const auto shard = std::make_shared<const std::string>(*SerializeSafetensors(file));
  ModelComputer second({});
  EXPECT_EQ(second.Run(Load{OneStage(), shard}).status.code(), absl::StatusCode::kInvalidArgument);
  const WorkResult loaded = second.Run(Load{OneStage(), shard, 7});
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  EXPECT_EQ(loaded.seeded_parameters, std::vector<std::string>{dropped});
  EXPECT_EQ(Saved(second), saved);
}

TEST(ModelComputer, SaysWhatDoesNotFitAndLivesOn) {
  ModelComputer computer({});
  v1::StageSpec spec = OneStage();
  spec.mutable_layers(1)->mutable_linear()->set_in_features(5);
  EXPECT_EQ(computer.Run(Load{spec, std::uint64_t{1}}).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(computer.Run(Forward{0, {Images(1)}, Labels(1)}).status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(computer.Run(Unload{}).status.ok());
  ASSERT_TRUE(computer.Run(Load{OneStage(), std::uint64_t{1}}).status.ok());
  // Another shape than the spec's is named.
  EncodedTensor wrong = Images(2);
  wrong.dims = {1, 2, 2, 2};
  const WorkResult refused = computer.Run(Forward{0, {wrong}, Labels(1)});
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(computer.Run(Forward{0, {Images(2)}, Labels(2)}).status.ok());
}

// ---- errors

struct FailingModel : model::StageModel {
  absl::Status Initialise(std::uint64_t) override { return absl::OkStatus(); }
  absl::Status LoadWeights(std::string_view) override { return absl::OkStatus(); }
  absl::StatusOr<std::string> SaveWeights() const override { return "weights"; }
  const std::vector<model::ParameterInfo>& parameters() const override { return parameters_; }
  absl::StatusOr<model::ForwardResult> Forward(int, const EncodedTensors&, const EncodedTensor*, const model::SampleIds&) override {
    if (throw_bad_alloc) throw std::bad_alloc();
    if (throw_other) throw std::runtime_error("a surprise");
    return absl::ResourceExhaustedError("out of memory; make micro-batches smaller");
  }
  absl::StatusOr<model::BackwardResult> Backward(int, const EncodedTensors&, double) override {
    model::BackwardResult result;
    result.non_finite = {{"fc0 gradient", 3}};
    return result;
  }
  absl::StatusOr<std::vector<double>> SquaredNorms() override { return std::vector<double>{1, 2}; }
  absl::Status ApplyStep(float, double) override { return absl::InternalError("LibTorch threw"); }
  void DropStep() override {}
  absl::StatusOr<model::ForwardResult> Evaluate(const EncodedTensors&, const EncodedTensor*) override {
    return model::ForwardResult();
  }
  model::MemoryUse Memory() const override { return {}; }
  void ResetPeakMemory() override {}
  int live_graphs() const override { return 0; }

  static inline bool throw_bad_alloc = false;
  static inline bool throw_other = false;
  std::vector<model::ParameterInfo> parameters_;
};

class ModelErrors : public ::testing::Test {
 protected:
  ModelErrors() {
    FailingModel::throw_bad_alloc = FailingModel::throw_other = false;
    EXPECT_TRUE(computer_.Run(Load{OneStage(), std::uint64_t{1}}).status.ok());
  }
  ModelComputer computer_{{}, [](const model::StageSpec&, const model::ComputeOptions& options) {
                            EXPECT_EQ(options.threads, 1);
                            EXPECT_TRUE(options.deterministic);
                            return absl::StatusOr<std::unique_ptr<model::StageModel>>(std::make_unique<FailingModel>());
                          }};
};

TEST_F(ModelErrors, OutOfMemoryIsTypedAndTheModelStays) {
  EXPECT_EQ(computer_.Run(Forward{0, {Images(1)}, Labels(1)}).status.code(), absl::StatusCode::kResourceExhausted);
  FailingModel::throw_bad_alloc = true;
  EXPECT_EQ(computer_.Run(Forward{0, {Images(1)}, Labels(1)}).status.code(), absl::StatusCode::kResourceExhausted);
  FailingModel::throw_other = true;
  FailingModel::throw_bad_alloc = false;
  EXPECT_EQ(computer_.Run(Forward{0, {Images(1)}, Labels(1)}).status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Saved(computer_), "weights");
}

TEST_F(ModelErrors, AFailedApplyUnloads) {
  EXPECT_EQ(computer_.Run(Apply{1, 1}).status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(computer_.Run(SaveShard{}).status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ModelErrors, NonFiniteCountsAreHandedOn) {
  const WorkResult result = computer_.Run(Backward{0, {}});
  ASSERT_EQ(result.non_finite.size(), 1u);
  EXPECT_EQ(result.non_finite[0].where, "fc0 gradient");
  EXPECT_EQ(result.non_finite[0].count, 3u);
}

}  // namespace
}  // namespace resbm::stage_server::testing
