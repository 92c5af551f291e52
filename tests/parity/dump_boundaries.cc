// Runs a stage with each kind of boundary, and of ResBM layer, in it and writes what went in and came out, one
// safetensors file a variant, for boundary_parity_test.py to repeat in PyTorch. Usage: dump_boundaries FOLDER
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/stage_model.h"
#include "tests/model/support/boundary_variants.h"
#include "tests/model/support/pipeline.h"
#include "tests/parity/dump_file.h"

namespace resbm::model {
namespace {

// The stage between two IDENTITY boundaries: a residual block, the variant as a boundary or as a layer, and all
// flattened.
void DumpVariant(const BoundaryVariant& variant, bool as_layer, const std::string& path) {
  BoundarySpec open;
  open.kind = BoundaryKind::kIdentity;
  SetCodecs(open, WireCodec::kFp32, WireCodec::kFp32);
  ModelBuilder builder({16, 10, 10});
  builder.Stem(16, 1, 4).With(open, 1).Block("group0.0", 16, 1, 4);
  if (as_layer) {
    builder.Resbm("group0.1", variant.spec, variant.ratio);
  } else {
    builder.With(variant.spec, variant.ratio);
  }
  const WholeModel model = builder.FlattenAll().With(open, 1).Dense("head", 2, false).Build();
  const int last = static_cast<int>(model.boundaries.size()) - 1;
  const std::unique_ptr<StageModel> stage = Must(StageModel::Create(Cut(model, {0, last})[1], ComputeOptions()));
  if (!stage->Initialise(3).ok()) throw std::runtime_error("Initialise");
  const EncodedTensor input = Uniform({4, 16, 10, 10}, 1);
  const ForwardResult forward = Must(stage->Forward(0, {input}, nullptr));
  const EncodedTensor gradient = Uniform(forward.activations.at(0).dims, 5);
  const BackwardResult backward = Must(stage->Backward(0, {gradient}));

  Dump dump;
  dump.AddEncoded("input", input);
  dump.AddEncoded("output", forward.activations.at(0));
  dump.AddEncoded("output_gradient", gradient);
  dump.AddEncoded("input_gradient", backward.gradients.at(0));
  dump.AddFile("weights.", Must(stage->SaveWeights()));
  dump.AddFile("gradients.", Must(stage->SaveGradients()));
  dump.Write(path);
}

void DumpAll(const std::string& folder) {
  const auto path = [&](const BoundaryVariant& variant) { return folder + "/" + variant.name + ".safetensors"; };
  for (const BoundaryVariant& variant : BoundaryVariants()) DumpVariant(variant, false, path(variant));
  for (const BoundaryVariant& variant : LayerVariants()) DumpVariant(variant, true, path(variant));
}

}  // namespace
}  // namespace resbm::model

int main(int argc, char** argv) { return resbm::model::DumpMain(argc, argv, &resbm::model::DumpAll); }
