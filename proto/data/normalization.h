// How the pixels of each data set are scaled.
#ifndef RESBM_PROTO_DATA_NORMALIZATION_H_
#define RESBM_PROTO_DATA_NORMALIZATION_H_

#include <vector>

#include "proto/resbm/v1/job.pb.h"

namespace resbm::data {

// What the first stage subtracts and divides by, per channel, after dividing bytes by 255: mean and
// standard deviation of the whole training set, known figures of each data set (so that they do not
// depend on limit_train). Empty when `data` names none of them.
struct Normalization {
  std::vector<float> mean;
  std::vector<float> standard_deviation;
};
Normalization NormalizationOf(const v1::Data& data);

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_NORMALIZATION_H_
