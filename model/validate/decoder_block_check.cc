#include "model/validate/decoder_block_check.h"

#include <cmath>
#include <string>
#include <variant>

#include "model/validate/shape_checks.h"
#include "proto/base/status.h"

namespace resbm::model {
namespace {

std::string Describe(const DecoderBlock& block) {
  return absl::StrCat("width ", block.width, ", heads ", block.heads, ", hidden ", block.hidden, ", dropout ",
                      block.dropout, ", rotary_base ", block.rotary_base, ", norm_epsilon ", block.norm_epsilon);
}

bool Alike(const DecoderBlock& a, const DecoderBlock& b) {
  return a.width == b.width && a.heads == b.heads && a.hidden == b.hidden && a.dropout == b.dropout &&
         a.rotary_base == b.rotary_base && a.norm_epsilon == b.norm_epsilon;
}

// `given`: the half that the layer says it has given away. `what` and `where` are of that half.
absl::Status CheckPlace(const LayerSpec& layer, const BoundarySpec* boundary, bool DecoderBlock::*given,
                        const char* what, const char* where) {
  const auto* block = std::get_if<DecoderBlock>(&layer.kind);
  const bool says = block != nullptr && block->*given;
  const bool wanted = boundary != nullptr && boundary->kind == BoundaryKind::kInBranch;
  if (says && !wanted) {
    return Invalid("layer \"", layer.name, "\": its ", what, " should stand in the boundary ", where,
                   " it, which is no IN_BRANCH");
  }
  if (!wanted) return absl::OkStatus();
  if (!says) {
    return Invalid("layer \"", layer.name, "\": the IN_BRANCH boundary ", where, " it takes the ", what,
                   " of a decoder block, this layer has not given one away");
  }
  if (!Alike(*block, boundary->decoder_block)) {
    return Invalid("layer \"", layer.name, "\" has ", Describe(*block), ", the IN_BRANCH boundary ", where, " it has ",
                   Describe(boundary->decoder_block));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckDropout(double rate) {
  if (rate >= 0 && rate < 1) return absl::OkStatus();
  return Invalid("dropout is ", rate, ", must be from 0 to below 1");
}

absl::Status CheckNormEpsilon(double epsilon) {
  if (epsilon > 0 && std::isfinite(epsilon)) return absl::OkStatus();
  return Invalid("norm_epsilon is ", epsilon, ", must be above 0");
}

absl::Status CheckDecoderBlock(const DecoderBlock& block) {
  RESBM_RETURN_IF_ERROR(CheckCount(block.width, "width"));
  RESBM_RETURN_IF_ERROR(CheckCount(3 * std::int64_t{block.width}, "3 times the width"));
  RESBM_RETURN_IF_ERROR(CheckCount(block.heads, "heads"));
  RESBM_RETURN_IF_ERROR(CheckCount(block.hidden, "hidden"));
  if (block.width % block.heads != 0 || block.width / block.heads % 2 != 0) {
    return Invalid("heads: ", block.heads, " do not divide a width of ", block.width,
                   " into parts of an even size, which rotary positions need");
  }
  if (!std::isfinite(block.rotary_base) || block.rotary_base < 1) {
    return Invalid("rotary_base is ", block.rotary_base, ", must be 1 or more");
  }
  RESBM_RETURN_IF_ERROR(CheckNormEpsilon(block.norm_epsilon));
  return CheckDropout(block.dropout);
}

absl::Status CheckMlpPlace(const LayerSpec& layer, const BoundarySpec* after) {
  return CheckPlace(layer, after, &DecoderBlock::mlp_in_boundary, "MLP", "after");
}

absl::Status CheckAttentionPlace(const BoundarySpec* before, const LayerSpec& layer) {
  return CheckPlace(layer, before, &DecoderBlock::attention_in_boundary, "attention", "before");
}

}  // namespace resbm::model
