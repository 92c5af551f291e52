#include "stage_server/compute/boundary_from_proto.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/wire/tensor_kind.h"
#include "stage_server/compute/checked_ints.h"

namespace resbm::stage_server {
namespace {

using v1::BoundarySpec;

std::vector<std::int64_t> Shape(const google::protobuf::RepeatedField<std::int64_t>& dims) {
  return {dims.begin(), dims.end()};
}

absl::Status Unknown(const char* what, int value) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", value, " is not known here; is the coordinator of a newer release?"));
}

absl::StatusOr<WireCodec> FloatCodec(const char* field, v1::Codec codec) {
  const std::optional<WireCodec> known = wire::FloatCodec(codec);
  if (known.has_value()) return *known;
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", static_cast<int>(codec), ", which is no codec for "
                                                 "activations and gradients that is known here"));
}

absl::StatusOr<model::WireTensor> TensorOf(const v1::WireTensor& spec) {
  model::WireTensor tensor;
  tensor.name = spec.name();
  tensor.shape = Shape(spec.shape());
  if (spec.activation_codec() != v1::CODEC_RAW) {
    RESBM_ASSIGN_OR_RETURN(tensor.activation_codec, FloatCodec("activation_codec", spec.activation_codec()));
    RESBM_ASSIGN_OR_RETURN(tensor.gradient_codec, FloatCodec("gradient_codec", spec.gradient_codec()));
    return tensor;
  }
  tensor.activation_codec = tensor.gradient_codec = WireCodec::kRaw;
  const std::optional<WireDtype> dtype = wire::IntegerDtype(spec.dtype());
  if (!dtype.has_value()) return Unknown("dtype", spec.dtype());
  tensor.dtype = *dtype;
  return tensor;
}

absl::StatusOr<model::BoundaryKind> KindOf(BoundarySpec::Kind kind) {
  switch (kind) {
    case BoundarySpec::RESBM: return model::BoundaryKind::kResbm;
    case BoundarySpec::IDENTITY: return model::BoundaryKind::kIdentity;
    case BoundarySpec::LINEAR: return model::BoundaryKind::kLinear;
    case BoundarySpec::BOTTLENECK: return model::BoundaryKind::kBottleneck;
    case BoundarySpec::IDENTITY_BLOCK: return model::BoundaryKind::kIdentityBlock;
    case BoundarySpec::TOPK: return model::BoundaryKind::kTopK;
    case BoundarySpec::IN_BRANCH: return model::BoundaryKind::kInBranch;
    case BoundarySpec::ADAPTER: return model::BoundaryKind::kAdapter;
    default: return absl::InvalidArgumentError("its kind is not known here; is the coordinator of a newer release?");
  }
}

absl::StatusOr<model::Shortcut> ShortcutOf(BoundarySpec::Shortcut shortcut) {
  switch (shortcut) {
    case BoundarySpec::RECONSTRUCT: return model::Shortcut::kReconstruct;
    case BoundarySpec::TRANSMIT: return model::Shortcut::kTransmit;
    case BoundarySpec::SHORTCUT_NONE: return model::Shortcut::kNone;
    case BoundarySpec::DIRECT: return model::Shortcut::kDirect;
    case BoundarySpec::PROJECTED: return model::Shortcut::kProjected;
    default: return Unknown("shortcut", shortcut);
  }
}

absl::StatusOr<model::Projection> ProjectionOf(BoundarySpec::Projection projection) {
  switch (projection) {
    case BoundarySpec::TRUNCATE: return model::Projection::kTruncate;
    case BoundarySpec::ORTHOGONAL: return model::Projection::kOrthogonal;
    case BoundarySpec::LEARNED: return model::Projection::kLearned;
    default: return Unknown("projection", projection);
  }
}

absl::StatusOr<model::LowDim> LowDimOf(const BoundarySpec::LowDim& spec, Ints& ints) {
  model::LowDim low_dim;
  low_dim.depth = ints("low_dim.depth", spec.depth());
  low_dim.width = ints("low_dim.width", spec.width());
  switch (spec.order()) {
    case BoundarySpec::LowDim::NORM_ACT_CONV: low_dim.order = model::LowDimOrder::kNormActConv; break;
    case BoundarySpec::LowDim::CONV_CONV_NORM: low_dim.order = model::LowDimOrder::kConvConvNorm; break;
    default: return Unknown("low_dim.order", spec.order());
  }
  switch (spec.attention()) {
    case BoundarySpec::LowDim::ATTENTION_NONE: low_dim.attention = model::LowDimAttention::kNone; break;
    case BoundarySpec::LowDim::SQUEEZE_EXCITE: low_dim.attention = model::LowDimAttention::kSqueezeExcite; break;
    case BoundarySpec::LowDim::SELF_ATTENTION: low_dim.attention = model::LowDimAttention::kSelfAttention; break;
    default: return Unknown("low_dim.attention", spec.attention());
  }
  return low_dim;
}

absl::StatusOr<model::BoundaryInit> InitOf(BoundarySpec::Init::Kind kind) {
  switch (kind) {
    case BoundarySpec::Init::KAIMING_FAN_OUT: return model::BoundaryInit::kKaimingFanOut;
    case BoundarySpec::Init::KAIMING_FAN_IN: return model::BoundaryInit::kKaimingFanIn;
    case BoundarySpec::Init::TIED_ORTHOGONAL: return model::BoundaryInit::kTiedOrthogonal;
    default: return Unknown("init.kind", kind);
  }
}

}  // namespace

model::DecoderBlock DecoderBlockFromProto(const v1::DecoderBlock& spec, Ints& ints) {
  model::DecoderBlock block;
  block.width = ints("width", spec.width());
  block.heads = ints("heads", spec.heads());
  block.hidden = ints("hidden", spec.hidden());
  block.dropout = spec.dropout();
  block.rotary_base = spec.rotary_base();
  block.norm_epsilon = spec.norm_epsilon();
  block.attention_in_boundary = spec.attention_in_boundary();
  block.mlp_in_boundary = spec.mlp_in_boundary();
  return block;
}

absl::StatusOr<model::BoundarySpec> BoundaryFromProto(const BoundarySpec& spec) {
  model::BoundarySpec boundary;
  Ints ints;
  boundary.cut_point = spec.cut_point();
  boundary.after_layer = ints("after_layer", spec.after_layer());
  RESBM_ASSIGN_OR_RETURN(boundary.kind, KindOf(spec.kind()));
  boundary.in_channels = ints("in_channels", spec.in_channels());
  boundary.out_channels = ints("out_channels", spec.out_channels());
  boundary.crossing_channels = ints("crossing_channels", spec.crossing_channels());
  boundary.norm_groups = ints("norm_groups", spec.norm_groups());
  boundary.block_channels = ints("block_channels", spec.block_channels());
  boundary.output_norm_groups = ints("output_norm_groups", spec.output_norm_groups());
  if (spec.stride() > 0) boundary.stride = ints("stride", spec.stride());
  RESBM_ASSIGN_OR_RETURN(boundary.shortcut, ShortcutOf(spec.shortcut()));
  if (boundary.kind == model::BoundaryKind::kInBranch || boundary.kind == model::BoundaryKind::kAdapter) {
    RESBM_ASSIGN_OR_RETURN(boundary.projection, ProjectionOf(spec.projection()));
  }
  boundary.decoder_block = DecoderBlockFromProto(spec.decoder_block(), ints);
  if (spec.has_low_dim()) {
    RESBM_ASSIGN_OR_RETURN(boundary.low_dim, LowDimOf(spec.low_dim(), ints));
  }
  if (spec.has_init()) {
    RESBM_ASSIGN_OR_RETURN(boundary.init, InitOf(spec.init().kind()));
    boundary.init_gain = spec.init().gain();
  }
  RESBM_RETURN_IF_ERROR(ints.status());
  for (const v1::WireTensor& tensor : spec.wire()) {
    absl::StatusOr<model::WireTensor> converted = TensorOf(tensor);
    if (!converted.ok()) return Annotate(converted.status(), absl::StrCat("wire \"", tensor.name(), "\""));
    boundary.wire.push_back(*std::move(converted));
  }
  if (spec.kept() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    return absl::InvalidArgumentError(absl::StrCat("kept is ", spec.kept()));
  }
  boundary.kept = static_cast<std::int64_t>(spec.kept());
  boundary.recompute = spec.recompute();
  boundary.input_shape = Shape(spec.input_shape());
  boundary.output_shape = Shape(spec.output_shape());
  return boundary;
}

}  // namespace resbm::stage_server
