// Which layers run on which stage: the model is cut at some of its boundaries.
#ifndef RESBM_COORDINATOR_PLAN_PARTITION_H_
#define RESBM_COORDINATOR_PLAN_PARTITION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/job/field_errors.h"
#include "coordinator/plan/model_plan.h"
#include "proto/resbm/v1/control.pb.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

// Layers by index, both ends included.
struct StageRange {
  int first_layer = 0;
  int last_layer = 0;

  friend bool operator==(const StageRange&, const StageRange&) = default;
};

struct PartitionPlan {
  std::vector<StageRange> stages;
  // Indices into ModelPlan::boundaries; cuts[k] separates stages k and k+1.
  std::vector<int> cuts;
  // Forward FLOPs of one sample on each stage: its layers, its uncut boundaries, the decoder before and the
  // encoder after it.
  std::vector<std::uint64_t> stage_flops;
};

// Number of stages that a run has: `requested` (how many --stages, else --local-stages) or what the job
// says: its stage{} list, else auto.stages (default 2, and also without a partition{}).
int StageCount(const v1::Job& job, std::optional<int> requested);

// By hand as the job's stage{} list says; otherwise the cuts that make the costliest stage as cheap as can
// be (exactly; by FLOPs), among equals those with the fewest bytes crossing, then the earliest.
//
// Without errors there is a plan. Errors: fewer than 1 stage, more stages than cut points + 1, a stage list
// of another length than `requested`, auto and stage together, cut_after that names no cut point, is
// missing, out of order, or stands on the last stage; addresses on some stages only or not host:port.
std::optional<PartitionPlan> PlanPartition(const v1::Job& job, const ModelPlan& model, std::optional<int> requested,
                                           FieldErrors& errors);

// The same; INVALID_ARGUMENT with one line per error.
absl::StatusOr<PartitionPlan> PlanPartition(const v1::Job& job, const ModelPlan& model, std::optional<int> requested);

// Bytes that cross a boundary per sample, activation and gradient together, without metadata.
std::uint64_t CrossingBytes(const v1::BoundarySpec& boundary);

// What the stage is told, but for its neighbours and the link key. `windows` are those of all stages, as
// the schedule resolves them. input_shape is what arrives there: uint8 images or bytes of text on the first
// stage, else the first tensor that crosses the boundary before it. Job, plan and partition belong together
// and are valid.
v1::StageSpec MakeStageSpec(const v1::Job& job, const ModelPlan& model, const PartitionPlan& partition, int stage,
                            absl::Span<const int> windows);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_PLAN_PARTITION_H_
