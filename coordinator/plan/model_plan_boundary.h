// One boundary of a job's model. A part of model_plan.
#ifndef RESBM_COORDINATOR_PLAN_MODEL_PLAN_BOUNDARY_H_
#define RESBM_COORDINATOR_PLAN_MODEL_PLAN_BOUNDARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/job/field_errors.h"
#include "coordinator/plan/model_plan_layers.h"
#include "proto/resbm/v1/job.pb.h"
#include "proto/resbm/v1/layer.pb.h"

namespace resbm::coordinator {

// Of the job's index-th cut point, between `layer` and `next`. Complete only if it adds no errors.
v1::BoundarySpec ExpandBoundary(const v1::Job& job, int index, const v1::LayerSpec& layer, const v1::LayerSpec& next,
                                FieldErrors& errors);

// A ResBM block that is the layer `name`, of [channels, height, width]: out_channels and stride of `block` are set, its
// other fields stand in the job at `path`. Complete only if it adds no errors.
v1::BoundarySpec ExpandResbmLayer(v1::Boundary block, const std::string& path, const std::string& name,
                                  const std::vector<std::int64_t>& input_shape, FieldErrors& errors);

// Of all cut points; fields out of range count as not set (ExpandBoundary reports them).
BoundaryChanges ChangesOfBoundaries(const v1::Job& job);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_PLAN_MODEL_PLAN_BOUNDARY_H_
