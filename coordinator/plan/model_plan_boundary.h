// One boundary of a job's model. A part of model_plan.
#ifndef RESBM_COORDINATOR_PLAN_MODEL_PLAN_BOUNDARY_H_
#define RESBM_COORDINATOR_PLAN_MODEL_PLAN_BOUNDARY_H_

#include "coordinator/job/field_errors.h"
#include "coordinator/plan/model_plan_layers.h"
#include "proto/resbm/v1/job.pb.h"
#include "proto/resbm/v1/layer.pb.h"

namespace resbm::coordinator {

// Of the job's index-th cut point, after `layer`. Complete only if it adds no errors.
v1::BoundarySpec ExpandBoundary(const v1::Job& job, int index, const v1::LayerSpec& layer, FieldErrors& errors);

// Of all cut points; fields out of range count as not set (ExpandBoundary reports them).
BoundaryChanges ChangesOfBoundaries(const v1::Job& job);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_PLAN_MODEL_PLAN_BOUNDARY_H_
