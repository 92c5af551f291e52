// Runs a stage with each kind of boundary in it and writes what went in and came out, one safetensors file a
// variant, for boundary_parity_test.py to repeat in PyTorch. Usage: dump_boundaries FOLDER
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/stage_model.h"
#include "proto/base/safetensors.h"
#include "tests/model/boundary_variants.h"
#include "tests/model/pipeline.h"

namespace resbm::model {
namespace {

template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

EncodedTensor Uniform(const std::vector<std::int64_t>& dims, std::uint32_t seed) {
  std::int64_t size = 1;
  for (const std::int64_t dim : dims) size *= dim;
  std::vector<float> values;
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::int64_t i = 0; i < size; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(state >> 8) / (1 << 23) - 1);
  }
  EncodedTensor encoded;
  encoded.dims = dims;
  encoded.payload = SharedBytes::CopyOf({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  return encoded;
}

// The stage between two IDENTITY boundaries: a residual block, the variant, and all flattened.
void DumpVariant(const BoundaryVariant& variant, const std::string& path) {
  BoundarySpec open;
  open.kind = BoundaryKind::kIdentity;
  SetCodecs(open, WireCodec::kFp32, WireCodec::kFp32);
  const WholeModel model = ModelBuilder({16, 10, 10})
                               .Stem(16, 1, 4)
                               .With(open, 1)
                               .Block("group0.0", 16, 1, 4)
                               .With(variant.spec, variant.ratio)
                               .FlattenAll()
                               .With(open, 1)
                               .Dense("head", 2, false)
                               .Build();
  const std::unique_ptr<StageModel> stage = Must(StageModel::Create(Cut(model, {0, 2})[1], ComputeOptions()));
  if (!stage->Initialise(3).ok()) throw std::runtime_error("Initialise");
  const EncodedTensor input = Uniform({4, 16, 10, 10}, 1);
  const ForwardResult forward = Must(stage->Forward(0, {input}, nullptr));
  const EncodedTensor gradient = Uniform(forward.activations.at(0).dims, 5);
  const BackwardResult backward = Must(stage->Backward(0, {gradient}));

  const std::string weights = Must(stage->SaveWeights());
  const std::string gradients = Must(stage->SaveGradients());
  SafetensorsFile file;
  const auto add = [&](const std::string& name, const EncodedTensor& encoded) {
    file.tensors.push_back({name, "F32", encoded.dims, encoded.payload.view()});
  };
  add("input", input);
  add("output", forward.activations.at(0));
  add("output_gradient", gradient);
  add("input_gradient", backward.gradients.at(0));
  for (const auto& [prefix, bytes] : {std::pair("weights.", &weights), std::pair("gradients.", &gradients)}) {
    for (const SafetensorsEntry& entry : Must(ParseSafetensors(*bytes)).tensors) {
      file.tensors.push_back({prefix + entry.name, entry.dtype, entry.shape, entry.data});
    }
  }
  const std::string bytes = Must(SerializeSafetensors(file));
  std::ofstream out(path, std::ios::binary);
  if (!out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    throw std::runtime_error("cannot write " + path);
  }
}

}  // namespace
}  // namespace resbm::model

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: dump_boundaries FOLDER\n";
    return 2;
  }
  try {
    for (const auto& variant : resbm::model::BoundaryVariants()) {
      resbm::model::DumpVariant(variant, std::string(argv[1]) + "/" + variant.name + ".safetensors");
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
