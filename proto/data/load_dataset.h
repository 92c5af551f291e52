// The data set that a job names.
#ifndef RESBM_PROTO_DATA_LOAD_DATASET_H_
#define RESBM_PROTO_DATA_LOAD_DATASET_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/data/dataset.h"
#include "proto/data/split.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::data {

// Reads the files that the job names; limit_train and limit_test keep the first samples. An empty
// fashion_mnist.directory is that of Debian's dataset-fashion-mnist; CIFAR may also lie in the folder that
// its archive unpacks to, within the directory. `context`: bytes of a sample of text; of images it means nothing.
// Messages name field, file and what to do.
// NOT_FOUND: a file is missing. DATA_LOSS: truncated or damaged (expected and found bytes).
// INVALID_ARGUMENT: no data set or no directory given, a negative limit, a file of another kind, counts of
// images and labels that differ, a label outside the classes, a text without two bytes for the split.
// PERMISSION_DENIED and the like as open(2).
absl::StatusOr<std::shared_ptr<const Dataset>> LoadDataset(const v1::Data& data, Split split, std::int64_t context);

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_LOAD_DATASET_H_
