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
  layer.recompute = spec.recompute();
  switch (spec.kind_case()) {
    case v1::LayerSpec::kStem: {
      const v1::ConvStem& s = spec.stem();
      layer.kind = model::ConvStem{ints("in_channels", s.in_channels()), ints("out_channels", s.out_channels()),
                                   ints("kernel", s.kernel()), ints("stride", s.stride()),
                                   ints("norm_groups", s.norm_groups()), s.batch_norm()};
      break;
    }
    case v1::LayerSpec::kResidualBlock: {
      const v1::ResidualBlock& b = spec.residual_block();
      layer.kind = model::ResidualBlock{b.bottleneck(),
                                        ints("in_channels", b.in_channels()),
                                        ints("out_channels", b.out_channels()),
                                        ints("stride", b.stride()),
                                        ints("norm_groups", b.norm_groups()),
                                        ints("inner_norm_groups", b.inner_norm_groups()),
                                        b.batch_norm()};
      break;
    }
    case v1::LayerSpec::kGlobalPool: layer.kind = model::GlobalPool{}; break;
    case v1::LayerSpec::kFlatten: layer.kind = model::Flatten{}; break;
    case v1::LayerSpec::kLinear: {
      const v1::Linear& l = spec.linear();
      layer.kind = model::Linear{ints("in_features", l.in_features()), ints("out_features", l.out_features()), l.relu()};
      break;
    }
    case v1::LayerSpec::kTokenEmbedding: {
      const v1::TokenEmbedding& e = spec.token_embedding();
      layer.kind = model::TokenEmbedding{ints("vocabulary", e.vocabulary()), ints("width", e.width()), e.dropout()};
      break;
    }
    case v1::LayerSpec::kDecoderBlock: layer.kind = DecoderBlockFromProto(spec.decoder_block(), ints); break;
    case v1::LayerSpec::kLanguageHead: {
      const v1::LanguageHead& h = spec.language_head();
      layer.kind = model::LanguageHead{ints("width", h.width()), ints("vocabulary", h.vocabulary()), h.norm_epsilon()};
      break;
    }
    case v1::LayerSpec::kResbm: {
      RESBM_ASSIGN_OR_RETURN(model::BoundarySpec block, BoundaryFromProto(spec.resbm()));
      layer.kind = model::ResbmLayer{std::move(block)};
      break;
    }
    case v1::LayerSpec::KIND_NOT_SET:
      return absl::InvalidArgumentError("its kind is not known here; is the coordinator of a newer release?");
  }
  RESBM_RETURN_IF_ERROR(ints.status());
  return layer;
}

absl::Status Unknown(const char* what, int value) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", value, " is not known here; is the coordinator of a newer release?"));
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
  for (const v1::ParameterGroup& group : spec.optimizer().groups()) {
    stage.parameter_groups.push_back({group.pattern(), group.rate_ratio(), std::nullopt});
    if (group.has_weight_decay()) stage.parameter_groups.back().weight_decay = group.weight_decay();
  }
  switch (spec.loss()) {
    case v1::StageSpec::CROSS_ENTROPY: stage.loss = model::Loss::kCrossEntropy; break;
    case v1::StageSpec::TOKEN_CROSS_ENTROPY: stage.loss = model::Loss::kTokenCrossEntropy; break;
    default: return Unknown("loss", spec.loss());
  }
  switch (spec.input()) {
    case v1::StageSpec::IMAGES: stage.input = model::InputKind::kImages; break;
    case v1::StageSpec::TOKENS: stage.input = model::InputKind::kTokens; break;
    default: return Unknown("input", spec.input());
  }
  switch (spec.precision()) {
    case v1::StageSpec::FP32: stage.precision = model::Precision::kFp32; break;
    case v1::StageSpec::BF16: stage.precision = model::Precision::kBf16; break;
    case v1::StageSpec::FP16: stage.precision = model::Precision::kFp16; break;
    default: return Unknown("precision", spec.precision());
  }
  stage.seed = spec.seed();
  stage.signals = spec.signals();
  stage.input_mean.assign(spec.input_mean().begin(), spec.input_mean().end());
  stage.input_std.assign(spec.input_std().begin(), spec.input_std().end());
  stage.input_shape = Shape(spec.input_shape());
  return stage;
}

}  // namespace resbm::stage_server
