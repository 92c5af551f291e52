#include "tests/model/support/models.h"

#include <functional>
#include <numeric>
#include <utility>

namespace resbm::model {

ModelBuilder& ModelBuilder::Add(std::string name, decltype(LayerSpec::kind) kind, std::vector<std::int64_t> output) {
  LayerSpec layer;
  layer.index = static_cast<int>(model_.layers.size());
  layer.name = std::move(name);
  layer.kind = kind;
  layer.input_shape = shape_;
  layer.output_shape = output;
  model_.layers.push_back(layer);
  shape_ = std::move(output);
  return *this;
}

ModelBuilder& ModelBuilder::Stem(int channels, int stride, int groups, int kernel) {
  ConvStem stem;
  stem.in_channels = static_cast<int>(shape_[0]);
  stem.out_channels = channels;
  stem.kernel = kernel;
  stem.stride = stride;
  stem.norm_groups = groups;
  return Add("stem", stem, {channels, (shape_[1] - 1) / stride + 1, (shape_[2] - 1) / stride + 1});
}

ModelBuilder& ModelBuilder::Block(const std::string& name, int channels, int stride, int groups, bool bottleneck) {
  ResidualBlock block;
  block.bottleneck = bottleneck;
  block.in_channels = static_cast<int>(shape_[0]);
  block.out_channels = channels;
  block.stride = stride;
  block.norm_groups = groups;
  block.inner_norm_groups = bottleneck ? 2 : 1;
  return Add(name, block, {channels, (shape_[1] - 1) / stride + 1, (shape_[2] - 1) / stride + 1});
}

ModelBuilder& ModelBuilder::Resbm(const std::string& name, BoundarySpec block, int ratio) {
  block.in_channels = static_cast<int>(shape_[0]);
  if (block.out_channels == 0) block.out_channels = block.in_channels;
  block.crossing_channels = block.in_channels / ratio;
  const std::vector<std::int64_t> output = {block.out_channels, (shape_[1] - 1) / block.stride + 1,
                                            (shape_[2] - 1) / block.stride + 1};
  return Add(name, ResbmLayer{std::move(block)}, output);
}

ModelBuilder& ModelBuilder::Pool() { return Add("pool", GlobalPool{}, {shape_[0]}); }

ModelBuilder& ModelBuilder::FlattenAll() {
  std::int64_t values = 1;
  for (const std::int64_t dim : shape_) values *= dim;
  return Add("flatten", Flatten{}, {values});
}

ModelBuilder& ModelBuilder::Dense(const std::string& name, int features, bool relu) {
  Linear linear;
  linear.in_features = static_cast<int>(shape_[0]);
  linear.out_features = features;
  linear.relu = relu;
  return Add(name, linear, {features});
}

ModelBuilder& ModelBuilder::Boundary(int ratio, int groups, WireCodec activations, WireCodec gradients,
                                     int out_channels) {
  BoundarySpec boundary;
  boundary.cut_point = model_.layers.back().name;
  boundary.after_layer = model_.layers.back().index;
  boundary.wire = {{.name = "z", .shape = shape_, .activation_codec = activations, .gradient_codec = gradients}};
  boundary.input_shape = boundary.output_shape = shape_;
  if (ratio == 0) {
    boundary.kind = BoundaryKind::kIdentity;
  } else {
    boundary.kind = BoundaryKind::kResbm;
    boundary.in_channels = static_cast<int>(shape_[0]);
    boundary.out_channels = out_channels == 0 ? boundary.in_channels : out_channels;
    boundary.crossing_channels = boundary.in_channels / ratio;
    boundary.norm_groups = groups;
    boundary.wire[0].shape[0] = boundary.crossing_channels;
    boundary.output_shape[0] = boundary.out_channels;
  }
  shape_ = boundary.output_shape;
  model_.boundaries.push_back(boundary);
  return *this;
}

ModelBuilder& ModelBuilder::With(BoundarySpec boundary, int ratio) {
  boundary.cut_point = model_.layers.back().name;
  boundary.after_layer = model_.layers.back().index;
  boundary.input_shape = boundary.output_shape = shape_;
  if (boundary.wire.empty()) boundary.wire = {{.name = "z"}};
  boundary.wire[0].shape = shape_;
  boundary.in_channels = static_cast<int>(shape_[0]);
  if (boundary.out_channels == 0) boundary.out_channels = boundary.in_channels;
  const int low = boundary.in_channels / ratio;
  if (boundary.kind == BoundaryKind::kTopK) {
    boundary.kept = std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1}, std::multiplies<>()) / ratio;
    boundary.wire[0].name = "values";
    boundary.wire[0].shape = {boundary.kept};
    boundary.wire.push_back({.name = "indices",
                             .shape = {boundary.kept},
                             .activation_codec = WireCodec::kRaw,
                             .gradient_codec = WireCodec::kRaw,
                             .dtype = WireDtype::kInt16});
  } else if (boundary.kind == BoundaryKind::kIdentityBlock) {
    boundary.block_channels = low;
  } else if (boundary.kind != BoundaryKind::kIdentity) {
    const bool twice = boundary.kind == BoundaryKind::kResbm && boundary.shortcut == Shortcut::kTransmit;
    boundary.crossing_channels = low;
    for (std::size_t i = 1; i < 3; ++i) boundary.output_shape[i] = (shape_[i] - 1) / boundary.stride + 1;
    boundary.wire[0].shape = boundary.output_shape;
    boundary.wire[0].shape[0] = twice ? 2 * low : low;
    boundary.output_shape[0] = boundary.out_channels;
  }
  shape_ = boundary.output_shape;
  model_.boundaries.push_back(boundary);
  return *this;
}

ModelBuilder& ModelBuilder::Optimizer(OptimizerOptions optimizer) {
  model_.optimizer = optimizer;
  return *this;
}

WholeModel SmallResnet(WireCodec codec, OptimizerOptions optimizer) {
  return ModelBuilder({1, 12, 12})
      .Stem(8, 1, 4)
      .Boundary(4, 1, codec, codec)
      .Block("group0.0", 8, 1, 4)
      .Boundary(2, 2, codec, codec)
      .Block("group0.1", 8, 1, 4)
      .Boundary(8, 0, codec, codec)
      .Block("group1.0", 16, 2, 4)
      .Boundary(0, 0, codec, codec)
      .Block("group1.1", 16, 1, 4, /*bottleneck=*/true)
      .Pool()
      .Dense("head", 5, false)
      .Optimizer(optimizer)
      .Build();
}

WholeModel SmallMlp(WireCodec codec, OptimizerOptions optimizer) {
  return ModelBuilder({2, 4, 4})
      .FlattenAll()
      .Boundary(0, 0, codec, codec)
      .Dense("hidden0", 24, true)
      .Boundary(0, 0, codec, codec)
      .Dense("hidden1", 16, true)
      .Boundary(0, 0, codec, codec)
      .Dense("head", 5, false)
      .Optimizer(optimizer)
      .Build();
}

std::vector<StageSpec> Cut(const WholeModel& model, const std::vector<int>& cuts) {
  std::vector<StageSpec> stages(cuts.size() + 1);
  std::size_t layer = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    StageSpec& stage = stages[s];
    stage.stage = static_cast<int>(s);
    stage.stages = static_cast<int>(stages.size());
    stage.optimizer = model.optimizer;
    stage.input_shape = model.input_shape;
    stage.input = model.input;
    stage.loss = model.loss;
    stage.seed = model.seed;
    stage.precision = model.precision;
    stage.parameter_groups = model.parameter_groups;
    if (s == 0 && model.input == InputKind::kImages) {
      stage.input_mean.assign(static_cast<std::size_t>(model.input_shape[0]), 0.3f);
      stage.input_std.assign(static_cast<std::size_t>(model.input_shape[0]), 0.35f);
    }
    const int first = static_cast<int>(layer);
    const bool last_stage = s + 1 == stages.size();
    const int last =
        last_stage ? model.layers.back().index : model.boundaries[static_cast<std::size_t>(cuts[s])].after_layer;
    for (; layer < model.layers.size() && model.layers[layer].index <= last; ++layer) {
      stage.layers.push_back(model.layers[layer]);
    }
    for (const BoundarySpec& boundary : model.boundaries) {
      if (boundary.after_layer >= first - 1 && boundary.after_layer <= last) stage.boundaries.push_back(boundary);
    }
  }
  return stages;
}

}  // namespace resbm::model
