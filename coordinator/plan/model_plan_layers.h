// The layers of a job's model. A part of model_plan.
#ifndef RESBM_COORDINATOR_PLAN_MODEL_PLAN_LAYERS_H_
#define RESBM_COORDINATOR_PLAN_MODEL_PLAN_LAYERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/job/field_errors.h"
#include "proto/resbm/v1/job.pb.h"
#include "proto/resbm/v1/layer.pb.h"

namespace resbm::coordinator {

// What a boundary leaves of the shape that it takes.
struct BoundaryChange {
  std::int64_t out_channels = 0;  // 0 = as many
  int stride = 1;
  // IN_BRANCH: the MLP of the block before it and the attention of the one after it are in the boundary.
  bool splits_block = false;
};
// By the name of the layer before the boundary.
using BoundaryChanges = std::map<std::string, BoundaryChange>;

// Complete only if it adds no errors. A change after a layer without height and width is passed over.
std::vector<v1::LayerSpec> ExpandLayers(const v1::Model& model, const BoundaryChanges& changes, FieldErrors& errors);

// At least 1 and at most `most`, or an error at `path`.
bool InRange(std::int64_t value, std::int64_t most, const std::string& path, FieldErrors& errors);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_PLAN_MODEL_PLAN_LAYERS_H_
