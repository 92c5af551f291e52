// This machine's copy of a job's data: read and checked once per job, then the source of its batches.
#ifndef RESBM_STAGE_SERVER_DATA_LOCAL_DATA_H_
#define RESBM_STAGE_SERVER_DATA_LOCAL_DATA_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/base/mutex.h"
#include "proto/data/batch_source.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::stage_server {

// Any thread.
class LocalData {
 public:
  // `folder`: where copies lie (--data); empty: there are none.
  explicit LocalData(std::string folder) : folder_(std::move(folder)) {}

  // Reads what `spec` uses, in place of what was there. Takes as long as reading the files does.
  // FAILED_PRECONDITION: no folder, or a copy that is not the coordinator's (says both hashes). INVALID_ARGUMENT: a
  // spec that makes no batches. Otherwise as data::LoadDataset.
  absl::Status Load(const v1::LocalData& spec);
  void Clear();

  // Null: nothing is loaded.
  std::shared_ptr<const data::BatchSource> source() const;

 private:
  const std::string folder_;
  mutable Mutex mutex_;
  std::shared_ptr<const data::BatchSource> source_ RESBM_GUARDED_BY(mutex_);
};

// The same data within `folder`: the folder of images, and of text each file or folder of its own name in it.
v1::Data Within(const std::string& folder, v1::Data data);

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_DATA_LOCAL_DATA_H_
