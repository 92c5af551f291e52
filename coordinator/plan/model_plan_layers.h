// The layers of a job's model. A part of model_plan.
#ifndef RESBM_COORDINATOR_PLAN_MODEL_PLAN_LAYERS_H_
#define RESBM_COORDINATOR_PLAN_MODEL_PLAN_LAYERS_H_

#include <vector>

#include "coordinator/job/field_errors.h"
#include "proto/resbm/v1/job.pb.h"
#include "proto/resbm/v1/layer.pb.h"

namespace resbm::coordinator {

// Complete only if it adds no errors.
std::vector<v1::LayerSpec> ExpandLayers(const v1::Model& model, FieldErrors& errors);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_PLAN_MODEL_PLAN_LAYERS_H_
