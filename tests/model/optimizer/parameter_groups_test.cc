#include "model/optimizer/parameter_groups.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "model/boundaries/boundary.h"
#include "model/layers/layers.h"
#include "tests/model/support/gpt.h"

namespace resbm::model {
namespace {

// Names of what Muon takes in the first two stages of a language model.
std::set<std::string> Taken(BoundaryKind kind, Projection projection) {
  GptOptions options;
  options.kind = kind;
  options.projection = projection;
  std::set<std::string> taken;
  for (const StageSpec& spec : Cut(SmallGpt(options), {0})) {
    ParameterList parameters(c10::kCPU, /*channels_last=*/false);
    for (const LayerSpec& layer : spec.layers) MakeLayer(layer, parameters);
    for (const BoundarySpec& boundary : spec.boundaries) {
      MakeEncoder(boundary, parameters);
      MakeDecoder(boundary, parameters);
    }
    for (const Parameter& parameter : parameters.all()) {
      if (MuonTakes(spec, parameter)) taken.insert(parameter.name);
    }
  }
  return taken;
}

TEST(MuonTakes, MatricesOfBlocksAndBoundariesOfALanguageModel) {
  const std::set<std::string> taken = Taken(BoundaryKind::kAdapter, Projection::kLearned);
  for (const char* name : {"block0.attention.qkv.weight", "block3.mlp.down.weight",
                           "boundaries.block1.compressor.weight", "boundaries.block1.low_dim.weight"}) {
    EXPECT_EQ(taken.count(name), 1u) << name;
  }
}

TEST(MuonTakes, NeitherEmbeddingNorHeadNorNormsNorOrthonormalProjections) {
  const std::set<std::string> taken = Taken(BoundaryKind::kInBranch, Projection::kLearned);
  EXPECT_EQ(taken.count("boundaries.block0.decompressor.weight"), 1u);
  for (const char* name : {"embedding.weight", "head.weight", "head.norm.weight", "boundaries.block0.norm1.weight",
                           "boundaries.block0.shortcut_down.weight", "boundaries.block0.shortcut_up.weight"}) {
    EXPECT_EQ(taken.count(name), 0u) << name;
  }
}

}  // namespace
}  // namespace resbm::model
