#include "stage_server/core/stage_shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/wire/tensor_frame.h"
#include "proto/wire/tensor_kind.h"

namespace resbm::stage_server {
namespace {

constexpr std::size_t kLinkKeyBytes = 16;

absl::StatusOr<std::vector<std::int64_t>> CheckedShape(const google::protobuf::RepeatedField<std::int64_t>& dims) {
  // One less than a frame's: the batch dimension comes in front.
  if (dims.empty() || dims.size() >= wire::kMaxDims) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", dims.size(), " dimensions, 1 to ", wire::kMaxDims - 1, " are allowed"));
  }
  for (std::int64_t dim : dims) {
    if (dim < 1) return absl::InvalidArgumentError(absl::StrCat("[", absl::StrJoin(dims, ", "), "] has a dimension below 1"));
  }
  return std::vector<std::int64_t>(dims.begin(), dims.end());
}

// Tensors that may cross a boundary together.
constexpr int kMostTensors = 64;

absl::Status AddTensor(const v1::WireTensor& spec, CutBoundary* cut) {
  absl::StatusOr<std::vector<std::int64_t>> dims = CheckedShape(spec.shape());
  if (!dims.ok()) return Annotate(dims.status(), "shape");
  if (spec.activation_codec() == v1::CODEC_RAW) {
    if (!wire::IntegerDtype(spec.dtype()).has_value()) {
      return absl::InvalidArgumentError("CODEC_RAW carries UINT8, INT16, INT32 or INT64, dtype says another");
    }
    cut->activations.push_back({*std::move(dims), v1::CODEC_RAW, spec.dtype()});
    return absl::OkStatus();
  }
  const std::optional<WireCodec> forward = wire::FloatCodec(spec.activation_codec());
  const std::optional<WireCodec> backward = wire::FloatCodec(spec.gradient_codec());
  if (!forward.has_value() || !backward.has_value()) {
    return absl::InvalidArgumentError(
        "activation_codec and gradient_codec must be CODEC_FP32, CODEC_BF16, CODEC_FP16, CODEC_INT8 or CODEC_INT4");
  }
  cut->gradients.push_back({*dims, spec.gradient_codec(), static_cast<v1::WireDtype>(*PayloadDtypeOf(*backward))});
  cut->activations.push_back({*std::move(dims), spec.activation_codec(), static_cast<v1::WireDtype>(*PayloadDtypeOf(*forward))});
  return absl::OkStatus();
}

absl::StatusOr<CutBoundary> Cut(const v1::BoundarySpec& spec) {
  CutBoundary cut;
  cut.cut_point = spec.cut_point();
  const std::string where = absl::StrCat("boundary \"", spec.cut_point(), "\": wire");
  if (spec.wire_size() > kMostTensors) {
    return absl::InvalidArgumentError(absl::StrCat(where, " has ", spec.wire_size(), " tensors, at most ",
                                                   kMostTensors, " are allowed"));
  }
  for (int i = 0; i < spec.wire_size(); ++i) {
    const absl::Status added = AddTensor(spec.wire(i), &cut);
    if (!added.ok()) return Annotate(added, absl::StrCat(where, "[", i, "] \"", spec.wire(i).name(), "\""));
  }
  if (cut.gradients.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(where, " has no tensor of floating point: no gradient would return"));
  }
  return cut;
}

// A class of each sample, or a token of each position: what the logits have but for their last dimension.
absl::StatusOr<TensorShape> Target(const v1::StageSpec& spec) {
  if (spec.loss() != v1::StageSpec::TOKEN_CROSS_ENTROPY) return TensorShape{{}, v1::CODEC_RAW, v1::INT64};
  absl::StatusOr<std::vector<std::int64_t>> logits =
      CheckedShape(spec.layers(spec.layers_size() - 1).output_shape());
  if (!logits.ok()) return Annotate(logits.status(), "output_shape of the last layer");
  logits->pop_back();
  return TensorShape{*std::move(logits), v1::CODEC_RAW, v1::INT16};
}

}  // namespace

absl::StatusOr<StageShape> StageShape::FromSpec(const v1::StageSpec& spec) {
  StageShape shape;
  if (spec.stage() >= spec.stages()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no such stage among ", spec.stages()));
  }
  shape.stage = spec.stage();
  shape.stages = spec.stages();
  if (spec.layers().empty()) return absl::InvalidArgumentError("it has no layers");
  if (spec.link_key().size() != kLinkKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("link_key has ", spec.link_key().size(), " bytes, it must have ", kLinkKeyBytes));
  }
  if (!spec.windows().empty()) {
    if (static_cast<std::uint32_t>(spec.windows_size()) != spec.stages()) {
      return absl::InvalidArgumentError(
          absl::StrCat(spec.windows_size(), " windows for ", spec.stages(), " stages; give one each, or none"));
    }
    shape.windows.assign(spec.windows().begin(), spec.windows().end());
  }
  if (shape.is_first()) {
    absl::StatusOr<std::vector<std::int64_t>> input = CheckedShape(spec.input_shape());
    if (!input.ok()) return Annotate(input.status(), "input_shape");
    shape.input = {*std::move(input), v1::CODEC_RAW, v1::UINT8};
  } else {
    const std::uint32_t first = spec.layers(0).index();
    if (spec.boundaries().empty() || first == 0 || spec.boundaries(0).after_layer() != first - 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("its first layer is ", first, " and no boundary before it is given"));
    }
    RESBM_ASSIGN_OR_RETURN(shape.up, Cut(spec.boundaries(0)));
  }
  if (!shape.is_last()) {
    const std::uint32_t last = spec.layers(spec.layers_size() - 1).index();
    if (spec.boundaries().empty() || spec.boundaries(spec.boundaries_size() - 1).after_layer() != last) {
      return absl::InvalidArgumentError(absl::StrCat("its last layer is ", last, " and no boundary after it is given"));
    }
    RESBM_ASSIGN_OR_RETURN(shape.down, Cut(spec.boundaries(spec.boundaries_size() - 1)));
  } else {
    RESBM_ASSIGN_OR_RETURN(shape.target, Target(spec));
  }
  return shape;
}

v1::MemoryPlan PlanMemory(const v1::StageSpec& spec) {
  // In doubles, so that absurd counts from a peer saturate instead of wrapping round to something small.
  double parameters = 0;
  for (const v1::LayerSpec& layer : spec.layers()) parameters += static_cast<double>(layer.parameters());
  const bool cut_before = spec.stage() > 0;
  const bool cut_after = spec.stage() + 1 < spec.stages();
  for (int i = 0; i < spec.boundaries_size(); ++i) {
    const v1::BoundarySpec& boundary = spec.boundaries(i);
    if (!(cut_before && i == 0)) parameters += static_cast<double>(boundary.encoder_parameters());
    if (!(cut_after && i == spec.boundaries_size() - 1)) parameters += static_cast<double>(boundary.decoder_parameters());
  }
  double per_parameter = 0;
  if (spec.optimizer().has_adamw()) per_parameter = 2;
  if (spec.optimizer().has_muon()) per_parameter = 1;  // at the least; what AdamW takes of it has 2
  if (spec.optimizer().has_sgd() && spec.optimizer().sgd().momentum() != 0) per_parameter = 1;
  const auto bytes = [](double values) {
    return static_cast<std::uint64_t>(values * 4 < 1e18 ? values * 4 : 1e18);
  };
  v1::MemoryPlan plan;
  plan.set_weights_bytes(bytes(parameters));
  plan.set_gradients_bytes(bytes(parameters));
  plan.set_optimizer_bytes(bytes(parameters * per_parameter));
  return plan;
}

std::uint64_t TotalBytes(const v1::MemoryPlan& plan) {
  return plan.weights_bytes() + plan.gradients_bytes() + plan.optimizer_bytes() + plan.buffers_bytes();
}

}  // namespace resbm::stage_server
