// Recomputation: the same bits for less memory.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/model/support/boundary_variants.h"
#include "tests/model/support/models.h"
#include "tests/model/support/pipeline.h"

namespace resbm::model {
namespace {

enum class Recompute { kNone, kBoundary, kLayers, kBoth };

WholeModel Model(Recompute recompute, const std::string& variant_name = "published") {
  BoundaryVariant variant;
  for (const BoundaryVariant& v : BoundaryVariants()) {
    if (v.name == variant_name) variant = v;
  }
  WholeModel model = VariantResnet(variant, WireCodec::kFp16, WireCodec::kFp16);
  if (recompute == Recompute::kBoundary || recompute == Recompute::kBoth) {
    for (BoundarySpec& boundary : model.boundaries) boundary.recompute = true;
  }
  if (recompute == Recompute::kLayers || recompute == Recompute::kBoth) {
    for (LayerSpec& layer : model.layers) layer.recompute = layer.name != "group0.1";
  }
  return model;
}

std::map<std::string, std::string> Train(const WholeModel& model, const std::vector<int>& cuts, Order order,
                                         const ComputeOptions& compute = {}) {
  Pipeline pipeline(model, cuts, compute);
  pipeline.Initialise(11);
  for (int step = 0; step < 2; ++step) {
    const StepResult result = pipeline.Compute(MakeBatch(model, 8, 3, static_cast<std::uint32_t>(step)), order);
    pipeline.Apply(result, /*clip_norm=*/0.5, 0.05);
  }
  return pipeline.Weights();
}

TEST(Recomputation, ChangesNoBitAtAnyNumberOfStages) {
  for (const std::string variant : {"published", "top_k", "identity_block"}) {
    const auto expected = Train(Model(Recompute::kNone, variant), {}, Order::kGpipe);
    ASSERT_FALSE(expected.empty());
    for (const Recompute recompute : {Recompute::kBoundary, Recompute::kLayers, Recompute::kBoth}) {
      const WholeModel model = Model(recompute, variant);
      for (const std::vector<int>& cuts : {std::vector<int>{}, {1}, {0, 2}, {0, 1, 2}}) {
        EXPECT_TRUE(Train(model, cuts, Order::kOneFOneB) == expected)
            << variant << ", recompute " << static_cast<int>(recompute) << ", " << cuts.size() + 1 << " stages";
      }
    }
  }
}

TEST(Recomputation, ChangesNoBitWithChannelsInnermost) {
  ComputeOptions innermost;
  innermost.channels_last = true;
  const auto expected = Train(Model(Recompute::kNone), {}, Order::kGpipe, innermost);
  for (const Recompute recompute : {Recompute::kBoundary, Recompute::kLayers}) {
    EXPECT_TRUE(Train(Model(recompute), {1}, Order::kGpipe, innermost) == expected) << static_cast<int>(recompute);
  }
}

// Bytes that live graphs of 4 micro-batches hold in the last of two stages.
std::uint64_t BytesOfGraphs(Recompute recompute) {
  const WholeModel model = Model(recompute);
  Pipeline pipeline(model, {0});
  pipeline.Initialise(11);
  StageModel& first = *pipeline.stages()[0];
  StageModel& last = *pipeline.stages()[1];
  const Batch batch = MakeBatch(model, 32, 4, 1);
  std::vector<EncodedTensors> crossed;
  for (int m = 0; m < 4; ++m) crossed.push_back(first.Forward(m, {batch.images[m]}, nullptr)->activations);
  const std::uint64_t before = last.Memory().live_bytes;
  for (int m = 0; m < 4; ++m) EXPECT_TRUE(last.Forward(m, crossed[m], &batch.labels[m]).ok());
  return last.Memory().live_bytes - before;
}

TEST(Recomputation, KeepsOnlyWhatCrossedOrTheInputsOfLayers) {
  const std::uint64_t none = BytesOfGraphs(Recompute::kNone);
  const std::uint64_t layers = BytesOfGraphs(Recompute::kLayers);
  const std::uint64_t boundary = BytesOfGraphs(Recompute::kBoundary);
  EXPECT_LT(layers, none);
  EXPECT_LT(boundary, layers);
  // 3 boundaries' decoded z: fp32, 4 channels of 12x12, 32 samples each; then logits, labels and losses.
  EXPECT_LT(boundary, 3u * 32 * 4 * 12 * 12 * 4 + 8192) << "of " << none;
}

}  // namespace
}  // namespace resbm::model
