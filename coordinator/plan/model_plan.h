// The model of a job as the coordinator knows it, without LibTorch: every layer and every boundary with
// shapes, parameters and FLOPs. What the stages build is exactly this.
#ifndef RESBM_COORDINATOR_PLAN_MODEL_PLAN_H_
#define RESBM_COORDINATOR_PLAN_MODEL_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/job/field_errors.h"
#include "proto/resbm/v1/job.pb.h"
#include "proto/resbm/v1/layer.pb.h"

namespace resbm::coordinator {

struct ModelPlan {
  std::vector<v1::LayerSpec> layers;         // by index, from 0
  std::vector<v1::BoundarySpec> boundaries;  // as the job's cut points, ascending

  // Trainable values of layers and boundaries, and FLOPs of one sample's forward pass through all of them
  // (convolutions and linear layers; a multiply-add counts 2).
  std::uint64_t parameters() const;
  std::uint64_t forward_flops() const;
};

// resnet: "stem", "group<i>.<j>", "pool", "head". mlp: "flatten", "hidden<i>", "head". transformer: "embedding",
// "block<i>", "head".
//
// Boundaries are the job's `boundary` and `wire` with what the cut point sets itself put over them.
// GroupNorm groups in the low dimension, if not given: the largest divisor of C/r that is at most 8 and
// leaves a group at least 8 values (channels of the group x H x W); none (0) if even one group would hold
// fewer.
//
// Without errors the result is complete. Errors have paths into the job ("boundary.ratio"): sizes out of
// range, a cut point that is unknown, twice, not in the order of the layers or after the last one, a ratio
// that does not divide the channels, norm_groups that do not, a RESBM boundary after a layer without
// height and width. Fields that are marked unsupported are not looked at. A boundary that changes channels or
// size changes what the layers after it take.
std::optional<ModelPlan> ExpandModel(const v1::Job& job, FieldErrors& errors);

// The same; INVALID_ARGUMENT with one line per error.
absl::StatusOr<ModelPlan> ExpandModel(const v1::Job& job);

// The largest divisor of `value` that is at most `limit`. Both at least 1.
int LargestDivisor(int value, int limit);

// The rule above, for C/r = `channels` on height x width.
int LowDimNormGroups(int channels, std::int64_t height, std::int64_t width);

// What the boundary of the job's index-th cut point is, in the job's terms.
v1::Boundary MergedBoundary(const v1::Job& job, int index);
v1::Wire MergedWire(const v1::Job& job, int index);

// C/r is C over this: the ratio, but of a BOTTLENECK that sets none the classic 4.
int RatioOf(const v1::Boundary& boundary);
// Of a wire that does not say: what the job computes in, at 16 bits.
v1::Wire::Dtype UnsetWireDtype(const v1::Job& job);

// Which path sets the field of that boundary: "cut_point[1].boundary.ratio", or "boundary.ratio". `field` may be
// "low_dim.depth".
std::string BoundaryPath(const v1::Job& job, int index, const std::string& field);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_PLAN_MODEL_PLAN_H_
