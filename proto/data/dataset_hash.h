// Whether two copies of a data set are the same.
#ifndef RESBM_PROTO_DATA_DATASET_HASH_H_
#define RESBM_PROTO_DATA_DATASET_HASH_H_

#include <cstdint>

#include "proto/data/dataset.h"

namespace resbm::data {

// XXH3-64 of: the number of samples, the dims of an input and of a target and the number of classes, each as a
// little-endian int64; all inputs; all targets. A pass over the whole data: keep the result.
std::uint64_t HashOf(const Dataset& dataset);

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_DATASET_HASH_H_
