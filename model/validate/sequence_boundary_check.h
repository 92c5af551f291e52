// Checks of a transformer's boundaries. A part of validate.
#ifndef RESBM_MODEL_VALIDATE_SEQUENCE_BOUNDARY_CHECK_H_
#define RESBM_MODEL_VALIDATE_SEQUENCE_BOUNDARY_CHECK_H_

#include "absl/status/status.h"
#include "model/spec.h"

namespace resbm::model {

// Of kInBranch and kAdapter; shapes and codecs of `wire` have been looked at, one tensor of floating point crosses.
// INVALID_ARGUMENT names the field.
absl::Status CheckSequenceBoundary(const BoundarySpec& boundary);

}  // namespace resbm::model

#endif  // RESBM_MODEL_VALIDATE_SEQUENCE_BOUNDARY_CHECK_H_
