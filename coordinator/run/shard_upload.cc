#include "coordinator/run/shard_upload.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/time/time.h"
#include "proto/resbm/v1/control.grpc.pb.h"
#include "proto/wire/grpc_status.h"

namespace resbm::coordinator {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
constexpr absl::Duration kFirstPause = absl::Milliseconds(5);
// A stage that has the Resume waits for weights at once, or has refused it.
constexpr absl::Duration kLongestPause = absl::Seconds(1);

}  // namespace

ShardUpload::ShardUpload(std::shared_ptr<grpc::Channel> channel, const std::string& job_id, const v1::Fence& fence,
                         std::string_view weights, std::function<void(absl::Status)> done)
    : channel_(std::move(channel)),
      job_id_(job_id),
      fence_(fence),
      weights_(weights),
      done_(std::move(done)),
      thread_([this] { Run(); }) {}

ShardUpload::~ShardUpload() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    if (call_ != nullptr) call_->TryCancel();
    stopped_.NotifyAll();
  }
  thread_.join();
}

void ShardUpload::Run() {
  absl::Status status;
  absl::Duration pause = kFirstPause;
  for (std::size_t offset = 0; offset < weights_.size() && status.ok();) {
    v1::PutShardRequest request;
    request.set_job_id(job_id_);
    *request.mutable_fence() = fence_;
    request.set_offset(offset);
    const std::string_view piece = weights_.substr(offset, kPieceBytes);
    request.set_data(piece.data(), piece.size());
    status = Put(request);
    // The first piece may overtake the Resume that it belongs to, which comes by another stream.
    if (absl::IsFailedPrecondition(status) && offset == 0 && pause < kLongestPause) {
      MutexLock lock(mutex_);
      if (!stopping_) stopped_.WaitFor(mutex_, pause);
      pause *= 2;
      status = absl::OkStatus();
    } else {
      offset += piece.size();
    }
  }
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
  }
  done_(status);
}

absl::Status ShardUpload::Put(const v1::PutShardRequest& request) {
  grpc::ClientContext context;
  {
    MutexLock lock(mutex_);
    if (stopping_) return absl::CancelledError("the upload was stopped");
    call_ = &context;
  }
  v1::PutShardReply reply;
  const grpc::Status status = v1::StageControl::NewStub(channel_)->PutShard(&context, request, &reply);
  MutexLock lock(mutex_);
  call_ = nullptr;
  return wire::FromGrpc(status);
}

}  // namespace resbm::coordinator
