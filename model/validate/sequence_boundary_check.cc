#include "model/validate/sequence_boundary_check.h"

#include <cmath>

#include "model/validate/decoder_block_check.h"
#include "model/validate/shape_checks.h"
#include "proto/base/status.h"

namespace resbm::model {

absl::Status CheckSequenceBoundary(const BoundarySpec& boundary) {
  RESBM_RETURN_IF_ERROR(CheckSequence(boundary.input_shape, boundary.in_channels));
  const int low = boundary.crossing_channels;
  RESBM_RETURN_IF_ERROR(CheckCount(low, "crossing_channels"));
  RESBM_RETURN_IF_ERROR(CheckCount(4 * std::int64_t{low}, "4 times crossing_channels"));
  if (low > boundary.in_channels) {
    return Invalid("crossing_channels ", low, " is more than the width ", boundary.in_channels);
  }
  if (boundary.out_channels != boundary.in_channels || boundary.output_shape != boundary.input_shape ||
      boundary.stride != 1) {
    return Invalid("a boundary of a sequence keeps its shape and has no stride: in_channels ", boundary.in_channels,
                   ", out_channels ", boundary.out_channels, ", stride ", boundary.stride, ", from ",
                   Text(boundary.input_shape), " to ", Text(boundary.output_shape));
  }
  const Shape wire = {boundary.input_shape[0], low};
  if (boundary.wire[0].shape != wire) {
    return Invalid("from ", Text(boundary.input_shape), " ", Text(wire), " crosses, the spec says ",
                   Text(boundary.wire[0].shape));
  }
  if (boundary.init != BoundaryInit::kKaimingFanOut) {
    return Invalid("init.kind is not of IN_BRANCH and ADAPTER, whose matrices start as those of blocks; leave it out");
  }
  if (!std::isfinite(boundary.init_gain) || boundary.init_gain <= 0) {
    return Invalid("init_gain is ", boundary.init_gain, ", must be above 0");
  }
  if (boundary.kind != BoundaryKind::kInBranch) return absl::OkStatus();
  RESBM_RETURN_IF_ERROR(Annotate(CheckDecoderBlock(boundary.decoder_block), "decoder_block"));
  if (boundary.decoder_block.width != boundary.in_channels) {
    return Invalid("decoder_block has a width of ", boundary.decoder_block.width, ", in_channels is ",
                   boundary.in_channels);
  }
  return absl::OkStatus();
}

}  // namespace resbm::model
