// Runs a small language model with each kind of boundary and writes what went in and came out, one safetensors file a
// variant, for gpt_parity_test.py to repeat in PyTorch. Usage: dump_gpt FOLDER
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/stage_model.h"
#include "tests/model/support/gpt.h"
#include "tests/model/support/pipeline.h"
#include "tests/parity/dump_file.h"

namespace resbm::model {
namespace {

void DumpVariant(const GptOptions& options, const std::string& path) {
  Dump dump;
  const WholeModel model = SmallGpt(options);
  const Batch whole = MakeTokenBatch(model, 6, 1, 1);
  dump.AddEncoded("tokens", whole.images[0]);
  dump.AddEncoded("labels", whole.labels[0]);

  // Logits, and gradients of what a random gradient of theirs gives.
  const StageSpec shown = Cut(SmallGptThatShowsItsLogits(options), {3})[0];
  const std::unique_ptr<StageModel> stage = Must(StageModel::Create(shown, ComputeOptions()));
  if (!stage->Initialise(3).ok()) throw std::runtime_error("Initialise");
  const ForwardResult forward = Must(stage->Forward(0, {whole.images[0]}, nullptr));
  const EncodedTensor gradient = Uniform(forward.activations.at(0).dims, 5);
  Must(stage->Backward(0, {gradient}));
  dump.AddEncoded("logits", forward.activations.at(0));
  dump.AddEncoded("logits_gradient", gradient);
  dump.AddFile("weights.", Must(stage->SaveWeights()));
  dump.AddFile("gradients.", Must(stage->SaveGradients()));

  // The loss of tokens over three stages and micro-batches; the weights are those of before.
  Pipeline pipeline(model, {0, 2});
  pipeline.Initialise(3);
  const StepResult step = pipeline.Compute(MakeTokenBatch(model, 6, 3, 1), Order::kOneFOneB);
  const double numbers[] = {step.loss_sum, step.weight};
  dump.Add("loss_sum_and_weight", "F64", {2}, std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers)));
  for (const auto& each : pipeline.stages()) dump.AddFile("loss_gradients.", Must(each->SaveGradients()));
  dump.Write(path);
}

void DumpAll(const std::string& folder) {
  for (const GptVariant& variant : GptVariants()) {
    GptOptions options;
    options.kind = variant.kind;
    options.projection = variant.projection;
    options.codec = WireCodec::kFp32;
    DumpVariant(options, folder + "/" + variant.name + ".safetensors");
    if (variant.name != "in_branch_truncate") continue;
    options.context = 70;  // longer than one block of the attention kernel
    DumpVariant(options, folder + "/long.safetensors");
  }
}

}  // namespace
}  // namespace resbm::model

int main(int argc, char** argv) { return resbm::model::DumpMain(argc, argv, &resbm::model::DumpAll); }
