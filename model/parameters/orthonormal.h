// Matrices of orthonormal rows, which learned projections stay.
#ifndef RESBM_MODEL_PARAMETERS_ORTHONORMAL_H_
#define RESBM_MODEL_PARAMETERS_ORTHONORMAL_H_

#include "model/torch/torch_headers.h"

namespace resbm::model {

// Brings a matrix [rows, columns] that a step has moved back in place: its rows become orthonormal, or its columns if
// they are fewer. The Q of the QR decomposition whose R has a positive diagonal (the QR retraction; Absil, Mahony and
// Sepulchre 2008, "Optimization Algorithms on Matrix Manifolds", example 4.1.3): rows keep their order, a matrix that
// is orthonormal stays as it is but for rounding, and a scale of the whole does not matter. In double. Throws
// c10::Error.
void RetractOrthonormal(const at::Tensor& matrix);

}  // namespace resbm::model

#endif  // RESBM_MODEL_PARAMETERS_ORTHONORMAL_H_
