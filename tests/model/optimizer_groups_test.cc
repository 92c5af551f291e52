// Parameter groups: their own share of the rate, their own decay.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/model/support/models.h"
#include "tests/model/support/pipeline.h"

namespace resbm::model {
namespace {

using Weights = std::map<std::string, std::string>;

Weights Train(OptimizerOptions optimizer, const std::vector<ParameterGroup>& groups, const std::vector<int>& cuts = {},
              int steps = 2) {
  WholeModel model = SmallResnet(WireCodec::kFp16, optimizer);
  model.parameter_groups = groups;
  Pipeline pipeline(model, cuts);
  pipeline.Initialise(11);
  for (int step = 0; step < steps; ++step) {
    const Batch batch = MakeBatch(model, 8, 2, static_cast<std::uint32_t>(step));
    pipeline.Apply(pipeline.Compute(batch, Order::kGpipe), 0, 0.05);
  }
  return pipeline.Weights();
}

TEST(ParameterGroups, ARatioOfZeroHoldsWhatItMatchesAndNothingElse) {
  for (const OptimizerOptions& optimizer : {OptimizerOptions(SgdOptions()), OptimizerOptions(AdamWOptions()),
                                            OptimizerOptions(MuonOptions())}) {
    const Weights start = Train(optimizer, {}, {}, /*steps=*/0);
    const Weights held = Train(optimizer, {{.pattern = "boundaries.*", .rate_ratio = 0}});
    for (const auto& [name, bytes] : held) {
      EXPECT_EQ(bytes == start.at(name), absl::StartsWith(name, "boundaries.")) << name;
    }
  }
}

TEST(ParameterGroups, OneThatRepeatsTheDefaultsChangesNoBit) {
  AdamWOptions adamw;
  adamw.weight_decay = 0.1;
  EXPECT_EQ(Train(adamw, {{.pattern = "*.bias", .rate_ratio = 1, .weight_decay = 0.1}}), Train(adamw, {}));
}

TEST(ParameterGroups, TheFirstMatchCounts) {
  EXPECT_EQ(Train(SgdOptions(), {{.pattern = "*.bias", .rate_ratio = 0.5}, {.pattern = "*", .rate_ratio = 0}}),
            Train(SgdOptions(), {{.pattern = "*.bias", .rate_ratio = 0.5},
                                 {.pattern = "*.bias", .rate_ratio = 3},
                                 {.pattern = "*", .rate_ratio = 0}}));
}

TEST(ParameterGroups, DecayIsTheirOwn) {
  SgdOptions sgd;
  sgd.weight_decay = 0.5;
  const Weights decayed = Train(sgd, {});
  const Weights spared = Train(sgd, {{.pattern = "*.norm*.weight", .weight_decay = 0.0}});
  // Ones at the start: decay shows in the first step.
  EXPECT_NE(decayed.at("stem.norm.weight"), Train(SgdOptions(), {}).at("stem.norm.weight"));
  EXPECT_GT(Floats(spared.at("stem.norm.weight"))[0], Floats(decayed.at("stem.norm.weight"))[0]);
}

TEST(ParameterGroups, KeepTheFirstLaw) {
  const std::vector<ParameterGroup> groups = {{.pattern = "boundaries.*", .rate_ratio = 2},
                                              {.pattern = "*.bias", .weight_decay = 0.0}};
  const Weights expected = Train(MuonOptions(), groups);
  EXPECT_EQ(Train(MuonOptions(), groups, {1}), expected);
  EXPECT_EQ(Train(MuonOptions(), groups, {0, 1, 2, 3}), expected);
}

}  // namespace
}  // namespace resbm::model
