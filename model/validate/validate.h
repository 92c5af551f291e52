// Whether a stage's spec fits together, before anything is allocated for it.
#ifndef RESBM_MODEL_VALIDATE_VALIDATE_H_
#define RESBM_MODEL_VALIDATE_VALIDATE_H_

#include "absl/status/status.h"
#include "model/spec.h"

namespace resbm::model {

// Every shape follows from the one before it, boundaries stand where StageSpec says, groups divide channels,
// the optimizer's numbers make sense. INVALID_ARGUMENT names the layer or boundary, and both shapes.
absl::Status Validate(const StageSpec& spec);

}  // namespace resbm::model

#endif  // RESBM_MODEL_VALIDATE_VALIDATE_H_
