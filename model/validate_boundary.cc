#include "model/validate_boundary.h"

#include <cmath>

#include "model/shape_checks.h"
#include "proto/base/status.h"

namespace resbm::model {
namespace {

constexpr int kMostConvolutions = 1024;

bool IsFloatCodec(WireCodec codec) {
  switch (codec) {
    case WireCodec::kFp32:
    case WireCodec::kBf16:
    case WireCodec::kFp16:
    case WireCodec::kInt8:
    case WireCodec::kInt4: return true;
    case WireCodec::kRaw: break;
  }
  return false;
}

absl::Status CheckNorm(int groups, int channels, const char* what) {
  return groups == 0 ? absl::OkStatus() : CheckGroups(groups, channels, what);
}

// What RESBM and IDENTITY_BLOCK have between C/r = `low` and C_out.
absl::Status CheckBlock(const BoundarySpec& boundary, int low) {
  RESBM_RETURN_IF_ERROR(CheckNorm(boundary.norm_groups, low, "norm_groups"));
  RESBM_RETURN_IF_ERROR(CheckCount(boundary.low_dim.depth, "low_dim.depth"));
  RESBM_RETURN_IF_ERROR(CheckCount(boundary.low_dim.width, "low_dim.width"));
  if (boundary.low_dim.depth > kMostConvolutions) {
    return Invalid("low_dim.depth ", boundary.low_dim.depth, " is more than ", kMostConvolutions);
  }
  if (boundary.low_dim.width > 1 && boundary.low_dim.depth == 1) {
    return Invalid("low_dim.width ", boundary.low_dim.width, " needs a depth of 2 or more");
  }
  return CheckCount(std::int64_t{boundary.low_dim.width} * low, "low_dim.width times C/r");
}

absl::Status CheckStarts(const BoundarySpec& boundary, int low) {
  if (!std::isfinite(boundary.init_gain) || boundary.init_gain <= 0) {
    return Invalid("init_gain is ", boundary.init_gain, ", must be above 0");
  }
  if (boundary.init != BoundaryInit::kTiedOrthogonal) return absl::OkStatus();
  if (boundary.in_channels != boundary.out_channels || low > boundary.in_channels) {
    return Invalid("tied-orthogonal weights need out_channels (", boundary.out_channels, ") equal to in_channels (",
                   boundary.in_channels, ") and at most as many that cross (", low, ")");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckBoundary(const BoundarySpec& boundary) {
  RESBM_RETURN_IF_ERROR(CheckShape(boundary.input_shape, "input shape"));
  RESBM_RETURN_IF_ERROR(CheckShape(boundary.wire_shape, "wire shape"));
  RESBM_RETURN_IF_ERROR(CheckShape(boundary.output_shape, "output shape"));
  if (!IsFloatCodec(boundary.activation_codec) || !IsFloatCodec(boundary.gradient_codec)) {
    return Invalid("codecs ", static_cast<int>(boundary.activation_codec), " and ",
                   static_cast<int>(boundary.gradient_codec), ", must be fp32, bf16, fp16, int8 or int4");
  }
  Shape wire = boundary.input_shape;
  Shape output = boundary.input_shape;
  if (boundary.kind != BoundaryKind::kIdentity) {
    RESBM_RETURN_IF_ERROR(CheckCount(boundary.in_channels, "in_channels"));
    RESBM_RETURN_IF_ERROR(CheckCount(boundary.out_channels, "out_channels"));
    RESBM_RETURN_IF_ERROR(CheckCount(boundary.stride, "stride"));
    const bool whole = boundary.kind == BoundaryKind::kIdentityBlock;
    const int low = whole ? boundary.block_channels : boundary.crossing_channels;
    RESBM_RETURN_IF_ERROR(CheckCount(low, whole ? "block_channels" : "crossing_channels"));
    RESBM_RETURN_IF_ERROR(CheckImage(boundary.input_shape, boundary.in_channels));
    RESBM_RETURN_IF_ERROR(CheckStarts(boundary, low));
    if (whole && (boundary.stride != 1 || boundary.in_channels != boundary.out_channels)) {
      return Invalid("an IDENTITY_BLOCK boundary keeps channels and size: in_channels ", boundary.in_channels,
                     ", out_channels ", boundary.out_channels, ", stride ", boundary.stride);
    }
    if (whole || boundary.kind == BoundaryKind::kResbm) RESBM_RETURN_IF_ERROR(CheckBlock(boundary, low));
    if (boundary.kind == BoundaryKind::kBottleneck) {
      if (boundary.init == BoundaryInit::kTiedOrthogonal) {
        return Invalid("tied-orthogonal weights need a compressor and an expander, BOTTLENECK has neither");
      }
      RESBM_RETURN_IF_ERROR(CheckNorm(boundary.norm_groups, low, "norm_groups"));
      RESBM_RETURN_IF_ERROR(CheckNorm(boundary.output_norm_groups, boundary.out_channels, "output_norm_groups"));
    }
    if (!whole) {
      const bool twice = boundary.kind == BoundaryKind::kResbm && boundary.shortcut == Shortcut::kTransmit;
      wire = Convolved(boundary.input_shape, twice ? 2 * low : low, 1, boundary.stride);
      output = wire;
      output[0] = boundary.out_channels;
    }
  }
  if (boundary.wire_shape != wire || boundary.output_shape != output) {
    return Invalid("from ", Text(boundary.input_shape), " ", Text(wire), " crosses and ", Text(output),
                   " leaves, the spec says ", Text(boundary.wire_shape), " and ", Text(boundary.output_shape));
  }
  return absl::OkStatus();
}

}  // namespace resbm::model
