#include "coordinator/plan/model_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coordinator/job/nearest_name.h"
#include "coordinator/plan/model_plan_boundary.h"
#include "coordinator/plan/model_plan_layers.h"

namespace resbm::coordinator {
namespace {

constexpr int kMostLowDimGroups = 8;
constexpr std::int64_t kFewestValuesPerGroup = 8;

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

  plan.boundaries.push_back(ExpandBoundary(job, index, *layer, *(layer + 1), errors));
}

// Which layers and boundaries keep less and compute again for the backward pass.
void SetRecompute(const v1::Job& job, ModelPlan& plan, FieldErrors& errors) {
  if (job.recompute() == v1::BOUNDARY) {
    for (v1::BoundarySpec& boundary : plan.boundaries) boundary.set_recompute(true);
  }
  if (job.recompute() != v1::LAYERS) {
    if (job.recompute_layer_size() > 0) {
      errors.Add("recompute_layer", "is of recompute: LAYERS, not of ", v1::Recompute_Name(job.recompute()),
                 "; set that, or leave the names out");
    }
    return;
  }
  if (job.recompute_layer().empty()) errors.Add("recompute", "LAYERS needs names: recompute_layer: [...]");
  for (int i = 0; i < job.recompute_layer_size(); ++i) {
    const std::string& name = job.recompute_layer(i);
    const auto layer =
        std::find_if(plan.layers.begin(), plan.layers.end(), [&](const v1::LayerSpec& l) { return l.name() == name; });
    if (layer != plan.layers.end()) {
      layer->set_recompute(true);
      continue;
    }
    std::vector<std::string> names;
    for (const v1::LayerSpec& l : plan.layers) names.push_back(l.name());
    errors.Add(absl::StrCat("recompute_layer[", i, "]"), "no layer \"", name, "\"; ", SuggestName(name, names));
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

v1::Wire::Dtype UnsetWireDtype(const v1::Job& job) {
  return job.precision() == v1::BF16 ? v1::Wire::BF16 : v1::Wire::FP16;
}

std::string BoundaryPath(const v1::Job& job, int index, const std::string& field) {
  const google::protobuf::Message* own = &job.cut_point(index).boundary();
  for (const absl::string_view name : absl::StrSplit(field, '.')) {
    const auto* descriptor = own->GetDescriptor()->FindFieldByName({name.data(), name.size()});
    if (!own->GetReflection()->HasField(*own, descriptor)) return absl::StrCat("boundary.", field);
    if (descriptor->message_type() != nullptr) own = &own->GetReflection()->GetMessage(*own, descriptor);
  }
  return absl::StrCat("cut_point[", index, "].boundary.", field);
}

std::optional<ModelPlan> ExpandModel(const v1::Job& job, FieldErrors& errors) {
  const std::size_t before = errors.errors().size();
  ModelPlan plan;
  plan.layers = ExpandLayers(job.model(), ChangesOfBoundaries(job), errors);
  // Without layers every cut point would be unknown.
  if (errors.errors().size() > before) return std::nullopt;
  for (int i = 0; i < job.cut_point_size(); ++i) AddBoundary(job, i, plan, errors);
  SetRecompute(job, plan, errors);
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
