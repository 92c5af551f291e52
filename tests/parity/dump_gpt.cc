// Runs a small language model with each kind of boundary and writes what went in and came out, one safetensors file a
// variant, for gpt_parity_test.py to repeat in PyTorch. Usage: dump_gpt FOLDER
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/stage_model.h"
#include "proto/base/safetensors.h"
#include "tests/model/gpt.h"
#include "tests/model/pipeline.h"

namespace resbm::model {
namespace {

template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

// Collects tensors and writes them.
class Dump {
 public:
  void Add(const std::string& name, const std::string& dtype, std::vector<std::int64_t> shape, std::string bytes) {
    SafetensorsEntry entry;
    entry.name = name;
    entry.dtype = dtype;
    entry.shape = std::move(shape);
    tensors_.emplace_back(entry, std::move(bytes));
  }
  void AddEncoded(const std::string& name, const std::string& dtype, const EncodedTensor& encoded) {
    Add(name, dtype, encoded.dims, std::string(encoded.payload.view()));
  }
  void AddFile(const std::string& prefix, const std::string& safetensors) {
    const SafetensorsFile file = Must(ParseSafetensors(safetensors));
    for (const SafetensorsEntry& entry : file.tensors) {
      Add(prefix + entry.name, entry.dtype, entry.shape, std::string(entry.data));
    }
  }
  void Write(const std::string& path) {
    SafetensorsFile file;
    for (const auto& [entry, bytes] : tensors_) {
      file.tensors.push_back(entry);
      file.tensors.back().data = bytes;
    }
    const std::string bytes = Must(SerializeSafetensors(file));
    std::ofstream out(path, std::ios::binary);
    if (!out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
      throw std::runtime_error("cannot write " + path);
    }
  }

 private:
  std::vector<std::pair<SafetensorsEntry, std::string>> tensors_;
};

EncodedTensor Uniform(const std::vector<std::int64_t>& dims) {
  std::int64_t size = 1;
  for (const std::int64_t dim : dims) size *= dim;
  std::vector<float> values;
  std::uint32_t state = 12345;
  for (std::int64_t i = 0; i < size; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(state >> 8) / (1 << 23) - 1);
  }
  EncodedTensor encoded;
  encoded.dims = dims;
  encoded.payload = SharedBytes::CopyOf({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  return encoded;
}

void DumpVariant(const GptOptions& options, const std::string& path) {
  Dump dump;
  const WholeModel model = SmallGpt(options);
  const Batch whole = MakeTokenBatch(model, 6, 1, 1);
  dump.AddEncoded("tokens", "U8", whole.images[0]);
  dump.AddEncoded("labels", "I16", whole.labels[0]);

  // Logits, and gradients of what a random gradient of theirs gives.
  const StageSpec shown = Cut(SmallGptThatShowsItsLogits(options), {3})[0];
  const std::unique_ptr<StageModel> stage = Must(StageModel::Create(shown, ComputeOptions()));
  if (!stage->Initialise(3).ok()) throw std::runtime_error("Initialise");
  const ForwardResult forward = Must(stage->Forward(0, {whole.images[0]}, nullptr));
  const EncodedTensor gradient = Uniform(forward.activations.at(0).dims);
  Must(stage->Backward(0, {gradient}));
  dump.AddEncoded("logits", "F32", forward.activations.at(0));
  dump.AddEncoded("logits_gradient", "F32", gradient);
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

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: dump_gpt FOLDER\n";
    return 2;
  }
  try {
    resbm::model::DumpAll(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
