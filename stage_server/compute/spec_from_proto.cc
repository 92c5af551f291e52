#include "stage_server/compute/spec_from_proto.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace resbm::stage_server {
namespace {

// Reads the ints of one message; remembers the first that is too large.
class Ints {
 public:
  int operator()(const char* field, std::uint32_t value) {
    if (value > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) {
      if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(field, " is ", value));
      return 0;
    }
    return static_cast<int>(value);
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

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

absl::StatusOr<WireCodec> FloatCodec(const char* field, v1::Codec codec) {
  switch (codec) {
    case v1::CODEC_FP32: return WireCodec::kFp32;
    case v1::CODEC_BF16: return WireCodec::kBf16;
    case v1::CODEC_FP16: return WireCodec::kFp16;
    default:
      return absl::InvalidArgumentError(absl::StrCat(field, " is ", static_cast<int>(codec),
                                                     ", not CODEC_FP32, CODEC_BF16 or CODEC_FP16"));
  }
}

absl::StatusOr<model::BoundarySpec> Boundary(const v1::BoundarySpec& spec) {
  model::BoundarySpec boundary;
  Ints ints;
  boundary.cut_point = spec.cut_point();
  boundary.after_layer = ints("after_layer", spec.after_layer());
  switch (spec.kind()) {
    case v1::BoundarySpec::RESBM: boundary.kind = model::BoundaryKind::kResbm; break;
    case v1::BoundarySpec::IDENTITY: boundary.kind = model::BoundaryKind::kIdentity; break;
    default:
      return absl::InvalidArgumentError("its kind is not known here; is the coordinator of a newer release?");
  }
  boundary.in_channels = ints("in_channels", spec.in_channels());
  boundary.out_channels = ints("out_channels", spec.out_channels());
  boundary.crossing_channels = ints("crossing_channels", spec.crossing_channels());
  boundary.norm_groups = ints("norm_groups", spec.norm_groups());
  RESBM_RETURN_IF_ERROR(ints.status());
  RESBM_ASSIGN_OR_RETURN(boundary.activation_codec, FloatCodec("activation_codec", spec.activation_codec()));
  RESBM_ASSIGN_OR_RETURN(boundary.gradient_codec, FloatCodec("gradient_codec", spec.gradient_codec()));
  boundary.input_shape = Shape(spec.input_shape());
  boundary.wire_shape = Shape(spec.wire_shape());
  boundary.output_shape = Shape(spec.output_shape());
  return boundary;
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
    absl::StatusOr<model::BoundarySpec> converted = Boundary(boundary);
    if (!converted.ok()) return Annotate(converted.status(), absl::StrCat("boundary \"", boundary.cut_point(), "\""));
    stage.boundaries.push_back(*std::move(converted));
  }
  switch (spec.optimizer().kind_case()) {
    case v1::OptimizerSpec::kSgd: {
      const v1::SgdOptions& sgd = spec.optimizer().sgd();
      stage.optimizer = model::SgdOptions{sgd.momentum(), sgd.nesterov(), sgd.weight_decay(), sgd.dampening()};
      break;
    }
    case v1::OptimizerSpec::kAdamw: {
      const v1::AdamWOptions& adamw = spec.optimizer().adamw();
      stage.optimizer = model::AdamWOptions{adamw.beta1(), adamw.beta2(), adamw.epsilon(), adamw.weight_decay()};
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
