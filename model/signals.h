// What tells whether a cut hurts, of one micro-batch: how large what crosses is, how many directions of the low
// dimension it uses, how large the gradient is on both sides.
#ifndef RESBM_MODEL_SIGNALS_H_
#define RESBM_MODEL_SIGNALS_H_

#include "model/torch/torch_headers.h"

namespace resbm::model {

// Root of the mean square. 0 of nothing.
double RootMeanSquare(const at::Tensor& tensor);

// exp of the entropy of the normalised eigenvalues of z's uncentred covariance over channels (Roy and Vetterli
// 2007, "The effective rank", with the covariance's eigenvalues for singular values squared): from 1, one
// direction, to the number of channels, all alike. z: [N, C, ...] with `channels_at` 1, or [N, T, C] with 2; 0 of
// values that are all zero or not finite. Throws c10::Error.
double EffectiveRank(const at::Tensor& z, int channels_at);

}  // namespace resbm::model

#endif  // RESBM_MODEL_SIGNALS_H_
