// Runs models of model/ and writes what went in and came out, one safetensors file a case, for
// parity_test.py to repeat in PyTorch. Usage: dump FOLDER
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/stage_model.h"
#include "tests/model/support/models.h"
#include "tests/model/support/pipeline.h"
#include "tests/parity/dump_file.h"

namespace resbm::model {
namespace {

constexpr WireCodec kFp32 = WireCodec::kFp32;

// One stage alone: input, weights, output, the output's gradient, the gradients of weights and input.
void DumpStage(const StageSpec& spec, const EncodedTensor& input, const std::string& path) {
  const std::unique_ptr<StageModel> stage = Must(StageModel::Create(spec, ComputeOptions()));
  if (!stage->Initialise(3).ok()) throw std::runtime_error("Initialise");
  const ForwardResult forward = Must(stage->Forward(0, {input}, nullptr));
  const EncodedTensor gradient = Uniform(forward.activations.at(0).dims, 5);
  const BackwardResult backward = Must(stage->Backward(0, {gradient}));
  Dump dump;
  dump.AddEncoded("input", input);
  dump.AddEncoded("output", forward.activations.at(0));
  dump.AddEncoded("output_gradient", gradient);
  if (!backward.gradients.empty()) dump.AddEncoded("input_gradient", backward.gradients[0]);
  dump.AddFile("weights.", Must(stage->SaveWeights()));
  dump.AddFile("gradients.", Must(stage->SaveGradients()));
  dump.Write(path);
}

// Steps of a pipeline of two stages, and what they started from and led to.
void DumpTraining(const WholeModel& model, int micro_batches, double clip_norm, double learning_rate,
                  const std::string& path) {
  Pipeline pipeline(model, {1});
  pipeline.Initialise(3);
  Dump dump;
  const auto add_all = [&](const std::string& prefix, bool gradients) {
    for (const auto& stage : pipeline.stages()) {
      dump.AddFile(prefix, Must(gradients ? stage->SaveGradients() : stage->SaveWeights()));
    }
  };
  add_all("weights.", false);
  for (int step = 0; step < 4; ++step) {
    const std::string number = std::to_string(step);
    // Split and unsplit, the samples are the same.
    const Batch whole = MakeBatch(model, 8, 1, static_cast<std::uint32_t>(step));
    dump.AddEncoded("images." + number, whole.images[0]);
    dump.AddEncoded("labels." + number, whole.labels[0]);
    const Batch batch = MakeBatch(model, 8, micro_batches, static_cast<std::uint32_t>(step));
    const StepResult result = pipeline.Compute(batch, Order::kOneFOneB);
    dump.AddNumber("loss." + number, result.loss_sum / result.weight);
    dump.AddNumber("norm." + number, result.norm);
    if (step == 0) add_all("gradient_sums.", true);
    pipeline.Apply(result, clip_norm, learning_rate);
  }
  add_all("after.", false);
  dump.Write(path);
}

// Gradient sums over 8 samples and the weights that each step made of them, by the step's number.
void DumpSteps(const WholeModel& model, double learning_rate, const std::string& path) {
  Pipeline pipeline(model, {0});
  pipeline.Initialise(3);
  Dump dump;
  const auto add_all = [&](const std::string& what, int step, bool gradients) {
    for (const auto& stage : pipeline.stages()) {
      dump.AddFile(what + "." + std::to_string(step) + ".",
                   Must(gradients ? stage->SaveGradients() : stage->SaveWeights()));
    }
  };
  add_all("weights", 0, false);
  for (int step = 0; step < 4; ++step) {
    const Batch batch = MakeBatch(model, 8, 2, static_cast<std::uint32_t>(step));
    const StepResult result = pipeline.Compute(batch, Order::kOneFOneB);
    add_all("gradient_sums", step, true);
    pipeline.Apply(result, 0, learning_rate);
    add_all("weights", step + 1, false);
  }
  dump.Write(path);
}

// A stage in the middle: what enters has crossed an IDENTITY boundary, what leaves crosses another.
StageSpec Middle(const WholeModel& model) {
  return Cut(model, {0, static_cast<int>(model.boundaries.size()) - 1})[1];
}

// Matrices large enough for the kernels that large matrices get, wider and taller than square.
WholeModel WideResnet(const OptimizerOptions& optimizer) {
  return ModelBuilder({3, 8, 8})
      .Stem(64, 1, 8)
      .Boundary(4, 2, kFp32, kFp32)
      .Block("group0.0", 64, 1, 8)
      .Block("group1.0", 128, 2, 8)
      .Pool()
      .Dense("head", 5, false)
      .Optimizer(optimizer)
      .Build();
}

void DumpAll(const std::string& folder) {
  // The ResBM block in its published form, behind a residual block; and its decoder alone.
  const WholeModel published = ModelBuilder({256, 14, 14})
                                   .Stem(256, 1, 8)
                                   .Boundary(0, 0, kFp32, kFp32)
                                   .Block("group0.0", 256, 1, 8)
                                   .Boundary(16, 8, kFp32, kFp32)
                                   .FlattenAll()
                                   .Boundary(0, 0, kFp32, kFp32)
                                   .Dense("head", 2, false)
                                   .Build();
  DumpStage(Middle(published), Uniform({4, 256, 14, 14}, 1), folder + "/block.safetensors");
  DumpStage(Cut(published, {1, 2})[1], Uniform({4, 16, 14, 14}, 2), folder + "/decoder.safetensors");

  const WholeModel resnet = ModelBuilder({3, 17, 17})
                                .Stem(16, 2, 8, 5)
                                .Boundary(4, 2, kFp32, kFp32, /*out_channels=*/24)
                                .Block("group0.0", 16, 1, 8)
                                .Boundary(16, 0, kFp32, kFp32)
                                .Block("group0.1", 16, 1, 8)
                                .Block("group1.0", 32, 2, 8)
                                .Boundary(8, 1, kFp32, kFp32)
                                .Block("group1.1", 48, 1, 8, /*bottleneck=*/true)
                                .Block("group1.2", 48, 2, 8, /*bottleneck=*/true)
                                .Pool()
                                .Dense("head", 7, false)
                                .Boundary(0, 0, kFp32, kFp32)
                                .Dense("unused", 2, false)
                                .Build();
  const EncodedTensor images = MakeBatch(resnet, 6, 1, 9).images[0];
  DumpStage(Cut(resnet, {3})[0], images, folder + "/resnet.safetensors");

  SgdOptions plain;
  SgdOptions nesterov;
  nesterov.momentum = 0.9;
  nesterov.nesterov = true;
  nesterov.weight_decay = 0.01;
  SgdOptions dampened;
  dampened.momentum = 0.8;
  dampened.dampening = 0.3;
  dampened.weight_decay = 0.02;
  AdamWOptions adamw;
  adamw.beta1 = 0.85;
  adamw.beta2 = 0.98;
  adamw.epsilon = 1e-7;
  adamw.weight_decay = 0.1;
  const auto path = [&](const std::string& name) { return folder + "/" + name + ".safetensors"; };
  DumpTraining(SmallResnet(kFp32, nesterov), 3, 0.5, 0.1, path("training_resnet_nesterov"));
  DumpTraining(SmallMlp(kFp32, nesterov), 3, 0.5, 0.1, path("training_mlp_nesterov_split"));
  // Unsplit batches of 8 without clipping: the same sums in the same order, so bit for bit.
  DumpTraining(SmallMlp(kFp32, plain), 1, 0, 0.1, path("training_mlp_sgd"));
  DumpTraining(SmallMlp(kFp32, nesterov), 1, 0, 0.1, path("training_mlp_nesterov"));
  DumpTraining(SmallMlp(kFp32, dampened), 1, 0, 0.1, path("training_mlp_dampened"));
  DumpTraining(SmallMlp(kFp32, adamw), 1, 0, 0.01, path("training_mlp_adamw"));

  MuonOptions muon;
  muon.momentum = 0.9;
  muon.weight_decay = 0.2;
  muon.adamw = adamw;
  muon.adamw_rate_ratio = 0.5;
  DumpSteps(WideResnet(muon), 0.02, path("steps_muon"));
  muon.nesterov = false;
  muon.ns_steps = 3;
  muon.adjust = MuonOptions::Adjust::kMatchRmsAdamW;
  DumpSteps(SmallMlp(kFp32, muon), 0.02, path("steps_muon_mlp"));
}

}  // namespace
}  // namespace resbm::model

int main(int argc, char** argv) { return resbm::model::DumpMain(argc, argv, &resbm::model::DumpAll); }
