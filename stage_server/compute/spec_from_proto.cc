#include "stage_server/compute/spec_from_proto.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "stage_server/compute/boundary_from_proto.h"
#include "stage_server/compute/checked_ints.h"

namespace resbm::stage_server {
namespace {

std::vector<std::int64_t> Shape(const google::protobuf::RepeatedField<std::int64_t>& dims) {
  return {dims.begin(), dims.end()};
}

absl::StatusOr<model::LayerSpec> Layer(const v1::LayerSpec& spec) {
  model::LayerSpec layer;
  Ints ints;
  layer.index = ints("index", spec.index());
  layer.name = spec.name();
  layer.input_shape = Shape(spec.input_shape());
  layer.output_shape = Shape(spec.output_shape());
  switch (spec.kind_case()) {
    case v1::LayerSpec::kStem: {
      const v1::ConvStem& s = spec.stem();
      layer.kind = model::ConvStem{ints("in_channels", s.in_channels()), ints("out_channels", s.out_channels()),
                                   ints("kernel", s.kernel()), ints("stride", s.stride()),
                                   ints("norm_groups", s.norm_groups())};
      break;
    }
    case v1::LayerSpec::kResidualBlock: {
      const v1::ResidualBlock& b = spec.residual_block();
      layer.kind = model::ResidualBlock{b.bottleneck(),
                                        ints("in_channels", b.in_channels()),
                                        ints("out_channels", b.out_channels()),
                                        ints("stride", b.stride()),
                                        ints("norm_groups", b.norm_groups()),
                                        ints("inner_norm_groups", b.inner_norm_groups())};
      break;
    }
    case v1::LayerSpec::kGlobalPool: layer.kind = model::GlobalPool{}; break;
    case v1::LayerSpec::kFlatten: layer.kind = model::Flatten{}; break;
    case v1::LayerSpec::kLinear: {
      const v1::Linear& l = spec.linear();
      layer.kind = model::Linear{ints("in_features", l.in_features()), ints("out_features", l.out_features()), l.relu()};
      break;
    }
    case v1::LayerSpec::KIND_NOT_SET:
      return absl::InvalidArgumentError("its kind is not known here; is the coordinator of a newer release?");
  }
  RESBM_RETURN_IF_ERROR(ints.status());
  return layer;
}

model::AdamWOptions AdamW(const v1::AdamWOptions& adamw) {
  return {adamw.beta1(), adamw.beta2(), adamw.epsilon(), adamw.weight_decay()};
}

absl::StatusOr<model::MuonOptions> Muon(const v1::MuonOptions& spec) {
  model::MuonOptions muon;
  Ints ints;
  muon.momentum = spec.momentum();
  muon.nesterov = spec.nesterov();
  muon.weight_decay = spec.weight_decay();
  muon.ns_steps = ints("ns_steps", spec.ns_steps());
  RESBM_RETURN_IF_ERROR(ints.status());
  switch (spec.adjust()) {
    case v1::MuonOptions::ORIGINAL: muon.adjust = model::MuonOptions::Adjust::kOriginal; break;
    case v1::MuonOptions::MATCH_RMS_ADAMW: muon.adjust = model::MuonOptions::Adjust::kMatchRmsAdamW; break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("Muon's adjust ", static_cast<int>(spec.adjust()), " is not known here"));
  }
  muon.adamw = AdamW(spec.adamw());
  muon.adamw_rate_ratio = spec.adamw_rate_ratio();
  return muon;
}

}  // namespace

absl::StatusOr<model::StageSpec> SpecFromProto(const v1::StageSpec& spec) {
  model::StageSpec stage;
  Ints ints;
  stage.stage = ints("stage", spec.stage());
  stage.stages = ints("stages", spec.stages());
  RESBM_RETURN_IF_ERROR(ints.status());
  for (const v1::LayerSpec& layer : spec.layers()) {
    absl::StatusOr<model::LayerSpec> converted = Layer(layer);
    if (!converted.ok()) {
      return Annotate(converted.status(), absl::StrCat("layer ", layer.index(), " \"", layer.name(), "\""));
    }
    stage.layers.push_back(*std::move(converted));
  }
  for (const v1::BoundarySpec& boundary : spec.boundaries()) {
    absl::StatusOr<model::BoundarySpec> converted = BoundaryFromProto(boundary);
    if (!converted.ok()) return Annotate(converted.status(), absl::StrCat("boundary \"", boundary.cut_point(), "\""));
    stage.boundaries.push_back(*std::move(converted));
  }
  switch (spec.optimizer().kind_case()) {
    case v1::OptimizerSpec::kSgd: {
      const v1::SgdOptions& sgd = spec.optimizer().sgd();
      stage.optimizer = model::SgdOptions{sgd.momentum(), sgd.nesterov(), sgd.weight_decay(), sgd.dampening()};
      break;
    }
    case v1::OptimizerSpec::kAdamw: stage.optimizer = AdamW(spec.optimizer().adamw()); break;
    case v1::OptimizerSpec::kMuon: {
      RESBM_ASSIGN_OR_RETURN(stage.optimizer, Muon(spec.optimizer().muon()));
      break;
    }
    case v1::OptimizerSpec::KIND_NOT_SET:
      return absl::InvalidArgumentError("the optimizer is not known here; is the coordinator of a newer release?");
  }
  if (spec.loss() != v1::StageSpec::CROSS_ENTROPY) {
    return absl::InvalidArgumentError(absl::StrCat("loss ", static_cast<int>(spec.loss()), " is not known here"));
  }
  stage.input_mean.assign(spec.input_mean().begin(), spec.input_mean().end());
  stage.input_std.assign(spec.input_std().begin(), spec.input_std().end());
  stage.input_shape = Shape(spec.input_shape());
  return stage;
}

}  // namespace resbm::stage_server
