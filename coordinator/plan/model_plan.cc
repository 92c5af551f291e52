#include "coordinator/plan/model_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/job/nearest_name.h"
#include "coordinator/plan/model_plan_layers.h"

namespace resbm::coordinator {
namespace {

constexpr int kMostLowDimGroups = 8;
constexpr std::int64_t kFewestValuesPerGroup = 8;

v1::Codec CodecOf(v1::Wire::Dtype dtype, const std::string& path, FieldErrors& errors) {
  switch (dtype) {
    case v1::Wire::FP32: return v1::CODEC_FP32;
    case v1::Wire::BF16: return v1::CODEC_BF16;
    case v1::Wire::FP16: return v1::CODEC_FP16;
    default: break;
  }
  errors.Add(path, v1::Wire::Dtype_Name(dtype), " on the wire is not implemented");
  return v1::CODEC_UNSPECIFIED;
}

void SetCodecs(const v1::Job& job, int index, v1::BoundarySpec& spec, FieldErrors& errors) {
  const v1::Wire& own = job.cut_point(index).wire();
  const std::string own_path = absl::StrCat("cut_point[", index, "].wire.");
  const v1::Wire wire = MergedWire(job, index);
  spec.set_activation_codec(
      CodecOf(wire.activations(), (own.has_activations() ? own_path : "wire.") + "activations", errors));
  spec.set_gradient_codec(CodecOf(wire.gradients(), (own.has_gradients() ? own_path : "wire.") + "gradients", errors));
}

// "16 or 32": the divisors of `channels` nearest to a ratio that is none.
std::string NearestDivisors(int ratio, int channels) {
  int below = 0;
  int above = 0;
  for (int d = 1; d <= channels; ++d) {
    if (channels % d != 0) continue;
    if (d < ratio) below = d;
    if (d > ratio && above == 0) above = d;
  }
  if (below == 0) return absl::StrCat(above);
  return above == 0 ? absl::StrCat(below) : absl::StrCat(below, " or ", above);
}

void SetResbm(const v1::Job& job, int index, const v1::LayerSpec& layer, v1::BoundarySpec& spec, FieldErrors& errors) {
  const std::string cut_path = absl::StrCat("cut_point[", index, "].after");
  if (layer.output_shape_size() != 3) {
    errors.Add(cut_path, "a RESBM boundary needs channels, height and width, but \"", layer.name(), "\" gives ",
               layer.output_shape(0), " values; use boundary { kind: IDENTITY } there or another cut point");
    return;
  }
  const v1::Boundary boundary = MergedBoundary(job, index);
  const int channels = static_cast<int>(layer.output_shape(0));
  const std::int64_t height = layer.output_shape(1);
  const std::int64_t width = layer.output_shape(2);
  const std::int64_t pixels = height * width;
  const int ratio = boundary.ratio();
  if (ratio < 1 || channels % ratio != 0) {
    errors.Add(BoundaryPath(job, index, "ratio"), ratio, " does not divide ", channels, " channels at \"", layer.name(),
               "\"; try ", NearestDivisors(ratio, channels));
    return;
  }
  const int crossing = channels / ratio;
  int groups = LowDimNormGroups(crossing, height, width);
  if (boundary.has_norm_groups()) {
    groups = boundary.norm_groups();
    const std::string path = BoundaryPath(job, index, "norm_groups");
    if (groups < 0 || (groups > 0 && crossing % groups != 0)) {
      errors.Add(path, groups, " does not divide the ", crossing, crossing == 1 ? " channel" : " channels",
                 " that cross at \"", layer.name(), "\"; try ", NearestDivisors(groups, crossing),
                 ", or 0 for no norm");
      return;
    }
    if (groups > 0 && crossing / groups * pixels < 2) {
      errors.Add(path, groups, " leaves groups of one value at \"", layer.name(), "\"; try fewer, or 0 for no norm");
      return;
    }
  }
  spec.set_kind(v1::BoundarySpec::RESBM);
  spec.set_crossing_channels(crossing);
  spec.set_norm_groups(groups);
  *spec.mutable_wire_shape() = spec.input_shape();
  spec.set_wire_shape(0, crossing);

  const std::uint64_t c = channels;
  const std::uint64_t z = crossing;
  const std::uint64_t norm = groups > 0 ? 2 * z : 0;
  const std::uint64_t low_dim_conv = 9 * z * z + z;
  const std::uint64_t to_output = z * c + c;  // expander, and shortcut_recon
  spec.set_encoder_parameters(c * z + z);
  spec.set_decoder_parameters(2 * (norm + low_dim_conv) + 2 * to_output);
  spec.set_encoder_flops(2 * c * z * pixels);
  spec.set_decoder_flops(2 * (2 * 9 * z * z + 2 * z * c) * pixels);
}

void AddBoundary(const v1::Job& job, int index, ModelPlan& plan, FieldErrors& errors) {
  const std::string& after = job.cut_point(index).after();
  const std::string path = absl::StrCat("cut_point[", index, "].after");
  const auto layer =
      std::find_if(plan.layers.begin(), plan.layers.end(), [&](const v1::LayerSpec& l) { return l.name() == after; });
  if (layer == plan.layers.end()) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i + 1 < plan.layers.size(); ++i) names.push_back(plan.layers[i].name());
    errors.Add(path, after.empty() ? "names no layer" : absl::StrCat("no layer \"", after, "\""), "; ",
               SuggestName(after, names));
    return;
  }
  if (layer->index() + 1 == plan.layers.size()) {
    errors.Add(path, "nothing comes after the last layer, \"", after, "\"; cut before it");
    return;
  }
  for (int i = 0; i < index; ++i) {
    if (job.cut_point(i).after() == after) {
      errors.Add(path, "\"", after, "\" is a cut point already (cut_point[", i, "])");
      return;
    }
  }
  if (!plan.boundaries.empty() && plan.boundaries.back().after_layer() > layer->index()) {
    errors.Add(path, "\"", after, "\" comes before \"", plan.boundaries.back().cut_point(),
               "\" in the model; list cut points in the order of the layers");
    return;
  }

  v1::BoundarySpec& spec = plan.boundaries.emplace_back();
  spec.set_cut_point(after);
  spec.set_after_layer(layer->index());
  spec.set_in_channels(static_cast<std::uint32_t>(layer->output_shape(0)));
  spec.set_out_channels(spec.in_channels());
  *spec.mutable_input_shape() = layer->output_shape();
  *spec.mutable_output_shape() = layer->output_shape();
  SetCodecs(job, index, spec, errors);
  const v1::Boundary boundary = MergedBoundary(job, index);
  switch (boundary.kind()) {
    case v1::Boundary::RESBM: SetResbm(job, index, *layer, spec, errors); return;
    case v1::Boundary::IDENTITY:
      spec.set_kind(v1::BoundarySpec::IDENTITY);
      *spec.mutable_wire_shape() = spec.input_shape();
      return;
    default:
      errors.Add(BoundaryPath(job, index, "kind"), v1::Boundary::Kind_Name(boundary.kind()), " is not implemented");
  }
}

}  // namespace

std::uint64_t ModelPlan::parameters() const {
  std::uint64_t sum = 0;
  for (const v1::LayerSpec& l : layers) sum += l.parameters();
  for (const v1::BoundarySpec& b : boundaries) sum += b.encoder_parameters() + b.decoder_parameters();
  return sum;
}

std::uint64_t ModelPlan::forward_flops() const {
  std::uint64_t sum = 0;
  for (const v1::LayerSpec& l : layers) sum += l.forward_flops();
  for (const v1::BoundarySpec& b : boundaries) sum += b.encoder_flops() + b.decoder_flops();
  return sum;
}

int LargestDivisor(int value, int limit) {
  int divisor = std::min(value, limit);
  while (value % divisor != 0) --divisor;
  return divisor;
}

int LowDimNormGroups(int channels, std::int64_t height, std::int64_t width) {
  for (int groups = LargestDivisor(channels, kMostLowDimGroups);; groups = LargestDivisor(channels, groups - 1)) {
    if (channels / groups * height * width >= kFewestValuesPerGroup) return groups;
    if (groups == 1) return 0;
  }
}

v1::Boundary MergedBoundary(const v1::Job& job, int index) {
  v1::Boundary merged = job.boundary();
  merged.MergeFrom(job.cut_point(index).boundary());
  return merged;
}

v1::Wire MergedWire(const v1::Job& job, int index) {
  v1::Wire merged = job.wire();
  merged.MergeFrom(job.cut_point(index).wire());
  return merged;
}

std::string BoundaryPath(const v1::Job& job, int index, const std::string& field) {
  const v1::Boundary& own = job.cut_point(index).boundary();
  const bool is_own = own.GetReflection()->HasField(own, own.GetDescriptor()->FindFieldByName(field));
  return is_own ? absl::StrCat("cut_point[", index, "].boundary.", field) : absl::StrCat("boundary.", field);
}

std::optional<ModelPlan> ExpandModel(const v1::Job& job, FieldErrors& errors) {
  const std::size_t before = errors.errors().size();
  ModelPlan plan;
  plan.layers = ExpandLayers(job.model(), errors);
  // Without layers every cut point would be unknown.
  if (errors.errors().size() > before) return std::nullopt;
  for (int i = 0; i < job.cut_point_size(); ++i) AddBoundary(job, i, plan, errors);
  if (errors.errors().size() > before) return std::nullopt;
  return plan;
}

absl::StatusOr<ModelPlan> ExpandModel(const v1::Job& job) {
  FieldErrors errors;
  std::optional<ModelPlan> plan = ExpandModel(job, errors);
  if (!plan) return absl::InvalidArgumentError(errors.ToString());
  return *std::move(plan);
}

}  // namespace resbm::coordinator
