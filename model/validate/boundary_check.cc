#include "model/validate/boundary_check.h"

#include <cmath>

#include "model/validate/shape_checks.h"
#include "model/validate/sequence_boundary_check.h"
#include "proto/base/status.h"

namespace resbm::model {
namespace {

constexpr int kMostConvolutions = 1024;

absl::Status CheckWire(const BoundarySpec& boundary) {
  for (const WireTensor& tensor : boundary.wire) {
    RESBM_RETURN_IF_ERROR(CheckShape(tensor.shape, "wire shape"));
    if (tensor.has_gradient() && (!PayloadDtypeOf(tensor.activation_codec) || !PayloadDtypeOf(tensor.gradient_codec))) {
      return Invalid("tensor \"", tensor.name, "\": codecs ", static_cast<int>(tensor.activation_codec), " and ",
                     static_cast<int>(tensor.gradient_codec), ", must be fp32, bf16, fp16, int8 or int4");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTopK(const BoundarySpec& boundary) {
  std::int64_t values = 1;
  for (const std::int64_t dim : boundary.input_shape) values *= dim;
  if (boundary.output_shape != boundary.input_shape) {
    return Invalid("TOPK keeps the shape ", Text(boundary.input_shape), ", the spec says ",
                   Text(boundary.output_shape));
  }
  if (boundary.kept < 1 || boundary.kept > values) {
    return Invalid("keeps ", boundary.kept, " values of ", values, " in a sample");
  }
  if (boundary.input_shape.size() == 2 && boundary.kept % boundary.input_shape[0] != 0) {
    return Invalid("keeps ", boundary.kept, " values of a sequence, must be as many at each of its ",
                   boundary.input_shape[0], " positions");
  }
  const Shape kept = {boundary.kept};
  const auto& wire = boundary.wire;
  if (wire.size() != 2 || wire[0].shape != kept || wire[1].shape != kept || !wire[0].has_gradient() ||
      wire[1].has_gradient()) {
    return Invalid("TOPK sends values and their indices, [", boundary.kept, "] each");
  }
  const WireDtype index = wire[1].dtype;
  if (index != WireDtype::kInt32 && !(index == WireDtype::kInt16 && values <= 32768)) {
    return Invalid("indices of ", values, " values do not fit dtype ", static_cast<int>(index),
                   "; they cross as int32, or int16 up to 32768 values");
  }
  return absl::OkStatus();
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

absl::StatusOr<Shape> OutputOfResbm(const BoundarySpec& block, const Shape& input) {
  RESBM_RETURN_IF_ERROR(CheckCount(block.in_channels, "in_channels"));
  RESBM_RETURN_IF_ERROR(CheckCount(block.out_channels, "out_channels"));
  RESBM_RETURN_IF_ERROR(CheckCount(block.stride, "stride"));
  RESBM_RETURN_IF_ERROR(CheckCount(block.crossing_channels, "crossing_channels"));
  RESBM_RETURN_IF_ERROR(CheckImage(input, block.in_channels));
  RESBM_RETURN_IF_ERROR(CheckStarts(block, block.crossing_channels));
  RESBM_RETURN_IF_ERROR(CheckBlock(block, block.crossing_channels));
  if (block.shortcut == Shortcut::kDirect && (block.stride != 1 || block.in_channels != block.out_channels)) {
    return Invalid("a direct shortcut keeps channels and size: in_channels ", block.in_channels, ", out_channels ",
                   block.out_channels, ", stride ", block.stride, "; use a projected one");
  }
  return Convolved(input, block.out_channels, 1, block.stride);
}

absl::Status CheckBoundary(const BoundarySpec& boundary) {
  RESBM_RETURN_IF_ERROR(CheckShape(boundary.input_shape, "input shape"));
  RESBM_RETURN_IF_ERROR(CheckShape(boundary.output_shape, "output shape"));
  RESBM_RETURN_IF_ERROR(CheckWire(boundary));
  if (boundary.kind == BoundaryKind::kTopK) return CheckTopK(boundary);
  if (boundary.wire.size() != 1 || !boundary.wire[0].has_gradient()) {
    return Invalid("one tensor of floating point crosses, the spec has ", boundary.wire.size());
  }
  if (boundary.kind == BoundaryKind::kInBranch || boundary.kind == BoundaryKind::kAdapter) {
    return CheckSequenceBoundary(boundary);
  }
  if (boundary.shortcut == Shortcut::kDirect || boundary.shortcut == Shortcut::kProjected) {
    return Invalid("a shortcut of x itself does not cross a boundary; it is one of a layer");
  }
  Shape wire = boundary.input_shape;
  Shape output = boundary.input_shape;
  if (boundary.kind == BoundaryKind::kLinear && boundary.input_shape.size() == 2) {
    RESBM_RETURN_IF_ERROR(CheckSequence(boundary.input_shape, boundary.in_channels));
    RESBM_RETURN_IF_ERROR(CheckCount(boundary.crossing_channels, "crossing_channels"));
    RESBM_RETURN_IF_ERROR(CheckStarts(boundary, boundary.crossing_channels));
    if (boundary.out_channels != boundary.in_channels || boundary.stride != 1) {
      return Invalid("of a sequence, LINEAR keeps the width and has no stride: out_channels ", boundary.out_channels,
                     ", stride ", boundary.stride);
    }
    wire[1] = boundary.crossing_channels;
  } else if (boundary.kind != BoundaryKind::kIdentity) {
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
  if (boundary.wire[0].shape != wire || boundary.output_shape != output) {
    return Invalid("from ", Text(boundary.input_shape), " ", Text(wire), " crosses and ", Text(output),
                   " leaves, the spec says ", Text(boundary.wire[0].shape), " and ", Text(boundary.output_shape));
  }
  return absl::OkStatus();
}

}  // namespace resbm::model
