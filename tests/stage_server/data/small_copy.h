// What a coordinator says of a small data set, for stages that have a copy of it.
#ifndef RESBM_TESTS_STAGE_SERVER_DATA_SMALL_COPY_H_
#define RESBM_TESTS_STAGE_SERVER_DATA_SMALL_COPY_H_

#include <string>

#include "proto/data/dataset_hash.h"
#include "proto/data/load_dataset.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::stage_server::testing {

// Of MNIST's files in `folder` (WriteSmallMnist): steps of 8 in two micro-batches, evaluations in micro-batches of 4.
inline v1::LocalData SmallCopy(const std::string& folder) {
  v1::LocalData spec;
  spec.mutable_data()->mutable_mnist()->set_directory(folder);
  spec.mutable_data()->mutable_augment()->set_crop(true);
  spec.set_seed(3);
  spec.set_samples(8);
  spec.set_micro_batches(2);
  spec.set_evaluation_micro_batch(4);
  spec.set_train_hash(data::HashOf(**data::LoadDataset(spec.data(), data::Split::kTrain, 0)));
  spec.set_test_hash(data::HashOf(**data::LoadDataset(spec.data(), data::Split::kTest, 0)));
  return spec;
}

}  // namespace resbm::stage_server::testing

#endif  // RESBM_TESTS_STAGE_SERVER_DATA_SMALL_COPY_H_
