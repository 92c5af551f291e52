// Whether a boundary's spec fits together. A part of model/validate.
#ifndef RESBM_MODEL_VALIDATE_BOUNDARY_CHECK_H_
#define RESBM_MODEL_VALIDATE_BOUNDARY_CHECK_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/validate/shape_checks.h"
#include "model/spec.h"

namespace resbm::model {

// Wire and output shape follow from the input shape and the kind, counts are in range, groups divide channels,
// codecs are of floats. INVALID_ARGUMENT names the field.
absl::Status CheckBoundary(const BoundarySpec& boundary);
// The shape that a ResBM block gives as an ordinary layer. INVALID_ARGUMENT as CheckBoundary.
absl::StatusOr<Shape> OutputOfResbm(const BoundarySpec& block, const Shape& input);

}  // namespace resbm::model

#endif  // RESBM_MODEL_VALIDATE_BOUNDARY_CHECK_H_
