#include "coordinator/plan/model_plan_layers.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/plan/model_plan.h"
#include "coordinator/plan/model_plan_boundary.h"
#include "coordinator/plan/model_plan_transformer.h"

namespace resbm::coordinator {
namespace {

// Far beyond what is useful; below what overflows a 64-bit count of FLOPs or a 32-bit field.
constexpr int kMostLayers = 1000;
constexpr int kMostChannels = 8192;
constexpr int kLargestImageSide = 1024;
constexpr int kLargestKernel = 31;
constexpr int kLargestStride = 16;
constexpr std::int64_t kMostFeatures = 1 << 24;
constexpr int kMostClasses = 1 << 20;

struct Shape {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t pixels() const { return height * width; }
  std::int64_t values() const { return channels * pixels(); }
};

// A convolution with padding kernel/2 of an odd kernel.
Shape Strided(const Shape& in, std::int64_t channels, int stride) {
  return {channels, (in.height - 1) / stride + 1, (in.width - 1) / stride + 1};
}

std::uint64_t ConvParameters(std::int64_t in, std::int64_t out, int kernel) { return in * out * kernel * kernel; }

std::uint64_t ConvFlops(std::int64_t in, const Shape& out, int kernel) {
  return 2 * in * kernel * kernel * out.values();
}

// Weight and bias of each channel.
std::uint64_t NormParameters(std::int64_t channels) { return 2 * channels; }

// Collects layers; each starts where the last one ended.
class LayerList {
 public:
  LayerList(const v1::ImageShape& input, const BoundaryChanges& changes, FieldErrors& errors)
      : shape_{input.channels(), input.height(), input.width()}, changes_(changes), errors_(errors) {}

  const Shape& shape() const { return shape_; }

  // `flattens`: from its output on shapes have one dimension.
  v1::LayerSpec& Add(std::string name, std::uint64_t parameters, std::uint64_t flops, const Shape& out,
                     bool flattens = false) {
    v1::LayerSpec& layer = layers_.emplace_back();
    layer.set_index(static_cast<std::uint32_t>(layers_.size() - 1));
    layer.set_name(std::move(name));
    layer.set_parameters(parameters);
    layer.set_forward_flops(flops);
    AddShape(*layer.mutable_input_shape());
    shape_ = out;
    flat_ |= flattens;
    AddShape(*layer.mutable_output_shape());
    const auto change = changes_.find(layer.name());
    if (change != changes_.end() && !flat_) {
      const std::int64_t channels = change->second.out_channels;
      shape_ = Strided(shape_, channels > 0 ? channels : shape_.channels, change->second.stride);
    }
    return layer;
  }

  FieldErrors& errors() { return errors_; }

  // Groups over `channels` on `at`; a group of one value would always come out as its bias.
  int NormGroups(int channels, int limit, const Shape& at, const std::string& path, const std::string& layer) {
    const int groups = LargestDivisor(channels, limit);
    if (channels / groups * at.pixels() < 2) {
      errors_.Add(path, "leaves GroupNorm groups of one value at \"", layer, "\" (", channels, " channels of ",
                  at.height, "x", at.width, "); use fewer norm_groups or less stride");
    }
    return groups;
  }

  std::vector<v1::LayerSpec> Take() { return std::move(layers_); }

 private:
  void AddShape(google::protobuf::RepeatedField<std::int64_t>& shape) const {
    shape.Add(shape_.channels);
    if (!flat_) shape.Add(shape_.height);
    if (!flat_) shape.Add(shape_.width);
  }

  Shape shape_;
  const BoundaryChanges& changes_;
  FieldErrors& errors_;
  bool flat_ = false;
  std::vector<v1::LayerSpec> layers_;
};

void AddLinear(std::string name, std::int64_t out, bool relu, LayerList& list) {
  const std::int64_t in = list.shape().channels;
  v1::LayerSpec& layer = list.Add(std::move(name), in * out + out, 2 * in * out, {out, 1, 1});
  layer.mutable_linear()->set_in_features(static_cast<std::uint32_t>(in));
  layer.mutable_linear()->set_out_features(static_cast<std::uint32_t>(out));
  layer.mutable_linear()->set_relu(relu);
}

// What norms are, of every layer. BatchNorm has no groups.
struct Norms {
  bool batch = false;
  int groups = 0;
  int Groups(int channels, const Shape& at, const std::string& path, const std::string& layer, LayerList& list) const {
    return batch ? 0 : list.NormGroups(channels, groups, at, path, layer);
  }
};

void AddStem(const v1::ResNet::Stem& stem, const Norms& norms, LayerList& list) {
  const Shape in = list.shape();
  const Shape out = Strided(in, stem.channels(), stem.stride());
  const int groups = norms.Groups(stem.channels(), out, "model.resnet.stem", "stem", list);
  v1::ConvStem& spec =
      *list.Add("stem", ConvParameters(in.channels, out.channels, stem.kernel()) + NormParameters(out.channels),
                ConvFlops(in.channels, out, stem.kernel()), out)
           .mutable_stem();
  spec.set_in_channels(static_cast<std::uint32_t>(in.channels));
  spec.set_out_channels(stem.channels());
  spec.set_kernel(stem.kernel());
  spec.set_stride(stem.stride());
  spec.set_norm_groups(groups);
  spec.set_batch_norm(norms.batch);
}

void AddResbm(const std::string& name, const v1::ResNet::Group& group, int stride, const std::string& path,
              LayerList& list) {
  const Shape in = list.shape();
  v1::Boundary block = group.resbm();
  block.set_out_channels(group.channels());
  block.set_stride(stride);
  v1::BoundarySpec spec =
      ExpandResbmLayer(block, path + ".resbm", name, {in.channels, in.height, in.width}, list.errors());
  *list.Add(name, spec.encoder_parameters() + spec.decoder_parameters(), spec.encoder_flops() + spec.decoder_flops(),
            Strided(in, group.channels(), stride))
       .mutable_resbm() = std::move(spec);
}

void AddBlock(const std::string& name, bool bottleneck, int channels, int stride, const Norms& norms,
              const std::string& path, LayerList& list) {
  const Shape in = list.shape();
  const Shape out = Strided(in, channels, stride);
  const Shape inner = {channels / 4, in.height, in.width};        // bottleneck: after conv1,
  const Shape inner_out = {channels / 4, out.height, out.width};  // after conv2
  std::uint64_t parameters = 0;
  std::uint64_t flops = 0;
  const auto add = [&](std::int64_t from, const Shape& to, int kernel) {
    parameters += ConvParameters(from, to.channels, kernel) + NormParameters(to.channels);
    flops += ConvFlops(from, to, kernel);
  };
  if (bottleneck) {
    add(in.channels, inner, 1);
    add(inner.channels, inner_out, 3);
    add(inner.channels, out, 1);
  } else {
    add(in.channels, out, 3);
    add(out.channels, out, 3);
  }
  if (stride > 1 || in.channels != out.channels) add(in.channels, out, 1);

  const int groups = norms.Groups(channels, out, path, name, list);
  const int inner_groups = bottleneck ? norms.Groups(channels / 4, inner_out, path, name, list) : 0;
  v1::ResidualBlock& spec = *list.Add(name, parameters, flops, out).mutable_residual_block();
  spec.set_bottleneck(bottleneck);
  spec.set_in_channels(static_cast<std::uint32_t>(in.channels));
  spec.set_out_channels(channels);
  spec.set_stride(stride);
  spec.set_norm_groups(groups);
  spec.set_inner_norm_groups(inner_groups);
  spec.set_batch_norm(norms.batch);
}

bool CheckImage(const v1::ImageShape& image, const std::string& path, FieldErrors& errors) {
  bool good = InRange(image.channels(), kMostChannels, path + ".channels", errors);
  good &= InRange(image.height(), kLargestImageSide, path + ".height", errors);
  good &= InRange(image.width(), kLargestImageSide, path + ".width", errors);
  if (!good) return false;
  const std::int64_t values = std::int64_t{image.channels()} * image.height() * image.width();
  if (values <= kMostFeatures) return true;
  errors.Add(path, "an image of ", values, " values is too large; at most ", kMostFeatures);
  return false;
}

bool CheckResNet(const v1::ResNet& resnet, FieldErrors& errors) {
  const std::string path = "model.resnet";
  bool good = CheckImage(resnet.input(), path + ".input", errors);
  good &= InRange(resnet.classes(), kMostClasses, path + ".classes", errors);
  good &= InRange(resnet.norm_groups(), kMostChannels, path + ".norm_groups", errors);
  good &= InRange(resnet.stem().channels(), kMostChannels, path + ".stem.channels", errors);
  good &= InRange(resnet.stem().stride(), kLargestStride, path + ".stem.stride", errors);
  good &= InRange(resnet.stem().kernel(), kLargestKernel, path + ".stem.kernel", errors);
  if (resnet.stem().kernel() % 2 == 0) {
    errors.Add(path + ".stem.kernel", resnet.stem().kernel(), " is even; kernels are odd, so that the padding is ",
               "the same on both sides");
    good = false;
  }
  std::int64_t layers = 3;
  for (int i = 0; i < resnet.group_size(); ++i) {
    const v1::ResNet::Group& group = resnet.group(i);
    const std::string at = absl::StrCat(path, ".group[", i, "]");
    good &= InRange(group.blocks(), kMostLayers, at + ".blocks", errors);
    good &= InRange(group.channels(), kMostChannels, at + ".channels", errors);
    good &= InRange(group.stride(), kLargestStride, at + ".stride", errors);
    if (group.block() == v1::ResNet::BOTTLENECK && group.channels() % 4 != 0) {
      errors.Add(at + ".channels", group.channels(), " channels: BOTTLENECK blocks need a multiple of 4");
      good = false;
    }
    layers += std::max(group.blocks(), 0);
  }
  if (good && layers > kMostLayers) {
    errors.Add(path + ".group", layers, " layers are too many; at most ", kMostLayers);
    good = false;
  }
  return good;
}

std::vector<v1::LayerSpec> ResNetLayers(const v1::ResNet& resnet, const BoundaryChanges& changes,
                                        FieldErrors& errors) {
  LayerList list(resnet.input(), changes, errors);
  const Norms norms = {resnet.norm() == v1::BATCH_NORM, resnet.norm_groups()};
  AddStem(resnet.stem(), norms, list);
  for (int i = 0; i < resnet.group_size(); ++i) {
    const v1::ResNet::Group& group = resnet.group(i);
    for (int j = 0; j < group.blocks(); ++j) {
      const std::string name = absl::StrCat("group", i, ".", j);
      const std::string path = absl::StrCat("model.resnet.group[", i, "]");
      const int stride = j == 0 ? group.stride() : 1;
      if (group.block() == v1::ResNet::RESBM) {
        AddResbm(name, group, stride, path, list);
      } else {
        AddBlock(name, group.block() == v1::ResNet::BOTTLENECK, group.channels(), stride, norms, path, list);
      }
    }
  }
  const Shape last = list.shape();
  list.Add("pool", 0, 0, {last.channels, 1, 1}, /*flattens=*/true).mutable_global_pool();
  AddLinear("head", resnet.classes(), false, list);
  return list.Take();
}

bool CheckMlp(const v1::Mlp& mlp, FieldErrors& errors) {
  const std::string path = "model.mlp";
  bool good = CheckImage(mlp.input(), path + ".input", errors);
  good &= InRange(mlp.classes(), kMostClasses, path + ".classes", errors);
  for (int i = 0; i < mlp.hidden_size(); ++i) {
    good &= InRange(mlp.hidden(i), kMostClasses, absl::StrCat(path, ".hidden[", i, "]"), errors);
  }
  if (mlp.hidden_size() > kMostLayers - 2) {
    errors.Add(path + ".hidden", mlp.hidden_size(), " hidden layers are too many; at most ", kMostLayers - 2);
    good = false;
  }
  return good;
}

std::vector<v1::LayerSpec> MlpLayers(const v1::Mlp& mlp, const BoundaryChanges& changes, FieldErrors& errors) {
  LayerList list(mlp.input(), changes, errors);
  const Shape image = list.shape();
  list.Add("flatten", 0, 0, {image.values(), 1, 1}, /*flattens=*/true).mutable_flatten();
  for (int i = 0; i < mlp.hidden_size(); ++i) AddLinear(absl::StrCat("hidden", i), mlp.hidden(i), true, list);
  AddLinear("head", mlp.classes(), false, list);
  return list.Take();
}

}  // namespace

bool InRange(std::int64_t value, std::int64_t most, const std::string& path, FieldErrors& errors) {
  if (value >= 1 && value <= most) return true;
  errors.Add(path, value, value < 1 ? " is too small; at least 1" : absl::StrCat(" is too large; at most ", most));
  return false;
}

std::vector<v1::LayerSpec> ExpandLayers(const v1::Model& model, const BoundaryChanges& changes, FieldErrors& errors) {
  switch (model.kind_case()) {
    case v1::Model::kResnet:
      if (!CheckResNet(model.resnet(), errors)) return {};
      return ResNetLayers(model.resnet(), changes, errors);
    case v1::Model::kMlp:
      if (!CheckMlp(model.mlp(), errors)) return {};
      return MlpLayers(model.mlp(), changes, errors);
    case v1::Model::kTransformer: return TransformerLayers(model.transformer(), changes, errors);
    case v1::Model::KIND_NOT_SET: break;
  }
  errors.Add("model", "says no kind of model; choose resnet {}, mlp {} or transformer {}");
  return {};
}

}  // namespace resbm::coordinator
