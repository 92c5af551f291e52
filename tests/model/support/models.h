// Small models for tests, built as the coordinator builds them: a chain of layers with boundaries, cut into
// stages at will. Torch-free.
#ifndef RESBM_TESTS_MODEL_SUPPORT_MODELS_H_
#define RESBM_TESTS_MODEL_SUPPORT_MODELS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/spec.h"

namespace resbm::model {

struct WholeModel {
  std::vector<LayerSpec> layers;
  std::vector<BoundarySpec> boundaries;
  OptimizerOptions optimizer;
  std::vector<std::int64_t> input_shape;
  InputKind input = InputKind::kImages;
  Loss loss = Loss::kCrossEntropy;
  std::uint64_t seed = 11;  // of dropout
  Precision precision = Precision::kFp32;
  std::vector<ParameterGroup> parameter_groups;

  std::int64_t classes() const { return layers.back().output_shape.front(); }
};

// Adds one layer after the other; each takes the shape that the last one gives.
class ModelBuilder {
 public:
  explicit ModelBuilder(std::vector<std::int64_t> input_shape) : shape_(input_shape) {
    model_.input_shape = std::move(input_shape);
  }
  ModelBuilder& Stem(int channels, int stride, int groups, int kernel = 3);
  ModelBuilder& Block(const std::string& name, int channels, int stride, int groups, bool bottleneck = false);
  // A ResBM block as a layer; places, shapes and channels are filled in as With does.
  ModelBuilder& Resbm(const std::string& name, BoundarySpec block, int ratio);
  ModelBuilder& Pool();
  ModelBuilder& FlattenAll();
  ModelBuilder& Dense(const std::string& name, int features, bool relu);
  // After the last layer. ratio 0 is IDENTITY.
  ModelBuilder& Boundary(int ratio, int groups, WireCodec activations, WireCodec gradients, int out_channels = 0);
  // Any boundary after the last layer: place, shapes and in_channels are filled in, and of 0 out_channels
  // as many; crossing_channels or block_channels become in_channels / ratio.
  ModelBuilder& With(BoundarySpec boundary, int ratio);
  ModelBuilder& Optimizer(OptimizerOptions optimizer);
  WholeModel Build() const { return model_; }

 private:
  ModelBuilder& Add(std::string name, decltype(LayerSpec::kind) kind, std::vector<std::int64_t> output);

  WholeModel model_;
  std::vector<std::int64_t> shape_;
};

// 1x12x12 grey, stem of 8 channels, two groups of two blocks, the second widening and striding (one bottleneck),
// pool, head of 5 classes; boundaries after "stem", "group0.0", "group0.1", "group1.0". 4 cut points: up to 5
// stages.
WholeModel SmallResnet(WireCodec codec, OptimizerOptions optimizer);

// 2x4x4, flatten, two hidden layers, head; IDENTITY boundaries after "flatten", "hidden0", "hidden1".
WholeModel SmallMlp(WireCodec codec, OptimizerOptions optimizer);

// One spec per stage; `cuts` are ascending indices of model.boundaries.
std::vector<StageSpec> Cut(const WholeModel& model, const std::vector<int>& cuts);

}  // namespace resbm::model

#endif  // RESBM_TESTS_MODEL_SUPPORT_MODELS_H_
