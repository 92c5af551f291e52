// The weights of one stage on their way to it, for a Resume with restore.
#ifndef RESBM_COORDINATOR_RUN_SHARD_UPLOAD_H_
#define RESBM_COORDINATOR_RUN_SHARD_UPLOAD_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "proto/base/mutex.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// Sends piece after piece on a thread of its own. There is no time limit: the driver has one for loading.
class ShardUpload {
 public:
  // Begins at once. `weights` outlives the upload. `done` is called once, on the upload's thread, with OK or what
  // the stage or the network said; not at all once the destructor has begun.
  ShardUpload(std::shared_ptr<grpc::Channel> channel, const std::string& job_id, const v1::Fence& fence,
              std::string_view weights, std::function<void(absl::Status)> done);
  // Breaks off the call under way. Not from `done`.
  ~ShardUpload();

 private:
  void Run();
  // One piece; CANCELLED when the upload is to stop.
  absl::Status Put(const v1::PutShardRequest& request) RESBM_EXCLUDES(mutex_);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::string job_id_;
  const v1::Fence fence_;
  const std::string_view weights_;
  const std::function<void(absl::Status)> done_;

  Mutex mutex_;
  CondVar stopped_;
  bool stopping_ RESBM_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* call_ RESBM_GUARDED_BY(mutex_) = nullptr;  // under way

  std::thread thread_;  // last: it uses the others
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_SHARD_UPLOAD_H_
