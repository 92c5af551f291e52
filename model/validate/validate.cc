#include "model/validate/validate.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/validate/decoder_block_check.h"
#include "model/validate/shape_checks.h"
#include "model/validate/boundary_check.h"
#include "proto/base/status.h"

namespace resbm::model {
namespace {

// The output shape that a layer kind gives.
struct OutputShape {
  const Shape& input;

  absl::StatusOr<Shape> operator()(const ConvStem& stem) const {
    RESBM_RETURN_IF_ERROR(CheckCount(stem.in_channels, "in_channels"));
    RESBM_RETURN_IF_ERROR(CheckCount(stem.out_channels, "out_channels"));
    RESBM_RETURN_IF_ERROR(CheckCount(stem.stride, "stride"));
    if (stem.kernel < 1 || stem.kernel % 2 == 0 || stem.kernel > 1023) {
      return Invalid("kernel ", stem.kernel, " must be odd and from 1 to 1023");
    }
    if (!stem.batch_norm) RESBM_RETURN_IF_ERROR(CheckGroups(stem.norm_groups, stem.out_channels, "norm_groups"));
    RESBM_RETURN_IF_ERROR(CheckImage(input, stem.in_channels));
    return Convolved(input, stem.out_channels, stem.kernel, stem.stride);
  }
  absl::StatusOr<Shape> operator()(const ResidualBlock& block) const {
    RESBM_RETURN_IF_ERROR(CheckCount(block.in_channels, "in_channels"));
    RESBM_RETURN_IF_ERROR(CheckCount(block.out_channels, "out_channels"));
    RESBM_RETURN_IF_ERROR(CheckCount(block.stride, "stride"));
    if (!block.batch_norm) RESBM_RETURN_IF_ERROR(CheckGroups(block.norm_groups, block.out_channels, "norm_groups"));
    if (block.bottleneck) {
      if (block.out_channels % 4 != 0)
        return Invalid("a bottleneck needs a multiple of 4 channels, not ", block.out_channels);
      if (!block.batch_norm) {
        RESBM_RETURN_IF_ERROR(CheckGroups(block.inner_norm_groups, block.out_channels / 4, "inner_norm_groups"));
      }
    }
    RESBM_RETURN_IF_ERROR(CheckImage(input, block.in_channels));
    return Convolved(input, block.out_channels, 3, block.stride);
  }
  absl::StatusOr<Shape> operator()(const GlobalPool&) const {
    if (input.size() != 3) return Invalid("takes [channels, height, width], its input shape is ", Text(input));
    return Shape{input[0]};
  }
  absl::StatusOr<Shape> operator()(const Flatten&) const {
    std::int64_t values = 1;
    for (const std::int64_t dim : input) values *= dim;
    return Shape{values};
  }
  absl::StatusOr<Shape> operator()(const Linear& linear) const {
    RESBM_RETURN_IF_ERROR(CheckCount(linear.in_features, "in_features"));
    RESBM_RETURN_IF_ERROR(CheckCount(linear.out_features, "out_features"));
    if (input != Shape{linear.in_features}) {
      return Invalid("takes [", linear.in_features, "], its input shape is ", Text(input));
    }
    return Shape{linear.out_features};
  }
  absl::StatusOr<Shape> operator()(const TokenEmbedding& embedding) const {
    RESBM_RETURN_IF_ERROR(CheckCount(embedding.vocabulary, "vocabulary"));
    RESBM_RETURN_IF_ERROR(CheckCount(embedding.width, "width"));
    RESBM_RETURN_IF_ERROR(CheckDropout(embedding.dropout));
    if (input.size() != 1) return Invalid("takes [positions], its input shape is ", Text(input));
    return Shape{input[0], embedding.width};
  }
  absl::StatusOr<Shape> operator()(const DecoderBlock& block) const {
    RESBM_RETURN_IF_ERROR(CheckDecoderBlock(block));
    RESBM_RETURN_IF_ERROR(CheckSequence(input, block.width));
    return input;
  }
  absl::StatusOr<Shape> operator()(const LanguageHead& head) const {
    RESBM_RETURN_IF_ERROR(CheckCount(head.width, "width"));
    RESBM_RETURN_IF_ERROR(CheckCount(head.vocabulary, "vocabulary"));
    RESBM_RETURN_IF_ERROR(CheckNormEpsilon(head.norm_epsilon));
    RESBM_RETURN_IF_ERROR(CheckSequence(input, head.width));
    return Shape{input[0], head.vocabulary};
  }
  absl::StatusOr<Shape> operator()(const ResbmLayer& layer) const { return OutputOfResbm(layer.block, input); }
};

absl::Status CheckLayer(const LayerSpec& layer) {
  if (layer.name.empty()) return Invalid("has no name");
  RESBM_RETURN_IF_ERROR(CheckShape(layer.input_shape, "input shape"));
  RESBM_ASSIGN_OR_RETURN(const Shape output, std::visit(OutputShape{layer.input_shape}, layer.kind));
  if (output != layer.output_shape) {
    return Invalid("gives ", Text(output), " from ", Text(layer.input_shape), ", the spec says ",
                   Text(layer.output_shape));
  }
  return CheckShape(layer.output_shape, "output shape");
}

absl::Status CheckSame(const std::string& where, const Shape& left, const Shape& right) {
  if (left == right) return absl::OkStatus();
  return Invalid(where, ": takes ", Text(right), ", before it comes ", Text(left));
}

// Layers and boundaries alternate as StageSpec says, each taking the shape that the one before it gives.
absl::Status CheckChain(const StageSpec& spec) {
  std::size_t next = 0;  // boundary
  const auto boundary_after = [&](int layer) {
    return next < spec.boundaries.size() && spec.boundaries[next].after_layer == layer ? &spec.boundaries[next]
                                                                                       : nullptr;
  };
  Shape shape = spec.input_shape;
  const BoundarySpec* before = nullptr;
  if (!spec.is_first()) {
    before = boundary_after(spec.layers.front().index - 1);
    if (before == nullptr) return Invalid("no boundary before its first layer \"", spec.layers.front().name, "\"");
    shape = before->output_shape;
    ++next;
  }
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    if (layer.index != spec.layers.front().index + static_cast<int>(i)) {
      return Invalid("layer \"", layer.name, "\" has index ", layer.index, ", ", spec.layers.front().index + i,
                     " is due");
    }
    RESBM_RETURN_IF_ERROR(CheckSame(absl::StrCat("layer \"", layer.name, "\""), shape, layer.input_shape));
    const bool takes_tokens = std::holds_alternative<TokenEmbedding>(layer.kind);
    const bool gets_tokens = spec.is_first() && i == 0 && spec.input == InputKind::kTokens;
    if (takes_tokens != gets_tokens) {
      return Invalid("layer \"", layer.name, "\" ", takes_tokens ? "takes tokens, but is not given any"
                                                                 : "is given tokens, but is no embedding");
    }
    shape = layer.output_shape;
    const bool last = i + 1 == spec.layers.size();
    const BoundarySpec* boundary = boundary_after(layer.index);
    RESBM_RETURN_IF_ERROR(CheckAttentionPlace(before, layer));
    RESBM_RETURN_IF_ERROR(CheckMlpPlace(layer, boundary));
    before = boundary;
    if (boundary == nullptr) {
      if (last && !spec.is_last()) return Invalid("no boundary after its last layer \"", layer.name, "\"");
      continue;
    }
    if (last && spec.is_last()) return Invalid("a boundary after the model's last layer \"", layer.name, "\"");
    const std::string where = absl::StrCat("boundary \"", boundary->cut_point, "\"");
    if (boundary->cut_point != layer.name) return Invalid(where, " stands after layer \"", layer.name, "\"");
    RESBM_RETURN_IF_ERROR(CheckSame(where, shape, boundary->input_shape));
    shape = boundary->output_shape;
    ++next;
  }
  if (next != spec.boundaries.size()) {
    return Invalid("boundary \"", spec.boundaries[next].cut_point, "\" after layer ", spec.boundaries[next].after_layer,
                   " does not belong to this stage, or stands out of order");
  }
  if (!spec.is_last()) return absl::OkStatus();
  const bool of_tokens = spec.loss == Loss::kTokenCrossEntropy;
  if (shape.size() != (of_tokens ? 2 : 1)) {
    return Invalid("the last layer must give ", of_tokens ? "[positions, vocabulary]" : "[classes]", ", it gives ",
                   Text(shape));
  }
  return absl::OkStatus();
}

absl::Status CheckInput(const StageSpec& spec) {
  RESBM_RETURN_IF_ERROR(CheckShape(spec.input_shape, "input shape"));
  if (spec.input == InputKind::kTokens) {
    if (spec.input_shape.size() == 1 && spec.input_mean.empty() && spec.input_std.empty()) return absl::OkStatus();
    return Invalid("tokens come as [positions], without means and standard deviations; the spec says ",
                   Text(spec.input_shape), " with ", spec.input_mean.size(), " and ", spec.input_std.size());
  }
  const auto channels = static_cast<std::size_t>(spec.input_shape[0]);
  if (spec.input_shape.size() != 3 || spec.input_mean.size() != channels || spec.input_std.size() != channels) {
    return Invalid("input ", Text(spec.input_shape), " has ", spec.input_mean.size(), " means and ",
                   spec.input_std.size(), " standard deviations, needs one of each per channel");
  }
  for (std::size_t i = 0; i < channels; ++i) {
    if (!std::isfinite(spec.input_mean[i]) || !(spec.input_std[i] > 0) || !std::isfinite(spec.input_std[i])) {
      return Invalid("input mean ", spec.input_mean[i], " or standard deviation ", spec.input_std[i], " of channel ",
                     i);
    }
  }
  return absl::OkStatus();
}

bool AtLeast0(double value) { return std::isfinite(value) && value >= 0; }
bool IsFraction(double value) { return value >= 0 && value < 1; }

absl::Status CheckAdamW(const AdamWOptions& adamw, const char* what) {
  if (IsFraction(adamw.beta1) && IsFraction(adamw.beta2) && AtLeast0(adamw.epsilon) && AtLeast0(adamw.weight_decay)) {
    return absl::OkStatus();
  }
  return Invalid(what, ": beta1 ", adamw.beta1, ", beta2 ", adamw.beta2, ", epsilon ", adamw.epsilon,
                 ", weight_decay ", adamw.weight_decay);
}

absl::Status CheckParameterGroups(const std::vector<ParameterGroup>& groups) {
  for (const ParameterGroup& group : groups) {
    if (!group.pattern.empty() && AtLeast0(group.rate_ratio) && AtLeast0(group.weight_decay.value_or(0))) continue;
    return Invalid("parameter group \"", group.pattern, "\": rate_ratio ", group.rate_ratio, ", weight_decay ",
                   group.weight_decay.value_or(0));
  }
  return absl::OkStatus();
}

absl::Status CheckOptimizer(const OptimizerOptions& optimizer) {
  if (const auto* sgd = std::get_if<SgdOptions>(&optimizer)) {
    if (!AtLeast0(sgd->momentum) || !AtLeast0(sgd->weight_decay) || !std::isfinite(sgd->dampening)) {
      return Invalid("sgd: momentum ", sgd->momentum, ", weight_decay ", sgd->weight_decay, ", dampening ",
                     sgd->dampening);
    }
    if (sgd->nesterov && (sgd->momentum == 0 || sgd->dampening != 0)) {
      return Invalid("sgd: nesterov needs a momentum and no dampening");
    }
    return absl::OkStatus();
  }
  if (const auto* adamw = std::get_if<AdamWOptions>(&optimizer)) return CheckAdamW(*adamw, "adamw");
  const auto& muon = std::get<MuonOptions>(optimizer);
  if (!IsFraction(muon.momentum) || !AtLeast0(muon.weight_decay) || muon.ns_steps < 1 || muon.ns_steps > 99 ||
      !AtLeast0(muon.adamw_rate_ratio)) {
    return Invalid("muon: momentum ", muon.momentum, ", weight_decay ", muon.weight_decay, ", ns_steps ",
                   muon.ns_steps, ", adamw_rate_ratio ", muon.adamw_rate_ratio);
  }
  return CheckAdamW(muon.adamw, "muon.adamw");
}

absl::Status CheckAll(const StageSpec& spec) {
  if (spec.stage < 0 || spec.stage >= spec.stages) return Invalid("is not one of ", spec.stages, " stages");
  if (spec.layers.empty()) return Invalid("has no layers");
  for (const LayerSpec& layer : spec.layers) {
    RESBM_RETURN_IF_ERROR(Annotate(CheckLayer(layer), absl::StrCat("layer \"", layer.name, "\"")));
  }
  for (const BoundarySpec& boundary : spec.boundaries) {
    RESBM_RETURN_IF_ERROR(Annotate(CheckBoundary(boundary), absl::StrCat("boundary \"", boundary.cut_point, "\"")));
  }
  if (spec.is_first()) RESBM_RETURN_IF_ERROR(CheckInput(spec));
  RESBM_RETURN_IF_ERROR(CheckChain(spec));
  RESBM_RETURN_IF_ERROR(CheckParameterGroups(spec.parameter_groups));
  return CheckOptimizer(spec.optimizer);
}

}  // namespace

absl::Status Validate(const StageSpec& spec) { return Annotate(CheckAll(spec), absl::StrCat("stage ", spec.stage)); }

}  // namespace resbm::model
