#include "coordinator/run/stage_client.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include <xxhash.h>

#include "absl/strings/str_format.h"
#include "proto/base/mutex.h"
#include "proto/resbm/v1/control.grpc.pb.h"
#include "proto/wire/grpc_link.h"
#include "proto/wire/grpc_status.h"

namespace resbm::coordinator {
namespace {

constexpr std::size_t kShardPieceBytes = 1 << 20;
constexpr absl::Duration kPieceTimeout = absl::Seconds(60);

std::chrono::system_clock::time_point DeadlineIn(absl::Duration timeout) {
  return std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout);
}

}  // namespace

// One read and at most one write are in flight. Owned by the client alone, which waits for OnDone before it
// lets go: were the last reference to the channel dropped in a callback, gRPC would join its own thread.
class StageClient::Session : public grpc::ClientBidiReactor<v1::ControlRequest, v1::ControlEvent> {
 public:
  static std::shared_ptr<Session> Open(const std::shared_ptr<grpc::Channel>& channel, Handlers handlers) {
    auto session = std::shared_ptr<Session>(new Session(channel, std::move(handlers)));
    session->stub_->async()->Session(&session->context_, session.get());
    session->StartRead(&session->event_);
    session->AddHold();  // writes start from other threads
    session->StartCall();
    return session;
  }

  void Send(const v1::ControlRequest& request) RESBM_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (half_closed_ || done_) return;
    outgoing_.push_back(request);
    WriteLocked();
  }

  void Close(absl::Duration patience) RESBM_EXCLUDES(mutex_) {
    bool cancel = false;
    {
      MutexLock lock(mutex_);
      EndWritesLocked();
      while (!done_ && !cancel) cancel = !done_changed_.WaitFor(mutex_, patience);
      if (done_) return;
    }
    context_.TryCancel();
    MutexLock lock(mutex_);
    while (!done_) done_changed_.Wait(mutex_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      // The stream is over: let go of the hold so that OnDone can come.
      MutexLock lock(mutex_);
      EndWritesLocked();
      return;
    }
    handlers_.on_event(std::move(event_));
    event_.Clear();
    StartRead(&event_);
  }

  void OnWriteDone(bool ok) override RESBM_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    writing_ = false;
    outgoing_.pop_front();
    if (!ok) outgoing_.clear();
    if (half_closed_ && outgoing_.empty()) {
      FinishWritesLocked();
    } else {
      WriteLocked();
    }
  }

  void OnDone(const grpc::Status& status) override {
    handlers_.on_closed(wire::FromGrpc(status));
    // The last touch: Close returns, and the session may go, as soon as the lock is free.
    MutexLock lock(mutex_);
    done_ = true;
    done_changed_.NotifyAll();
  }

 private:
  Session(const std::shared_ptr<grpc::Channel>& channel, Handlers handlers)
      : stub_(v1::StageControl::NewStub(channel)), handlers_(std::move(handlers)) {}

  void WriteLocked() RESBM_REQUIRES(mutex_) {
    if (writing_ || outgoing_.empty()) return;
    writing_ = true;
    StartWrite(&outgoing_.front());
  }

  void EndWritesLocked() RESBM_REQUIRES(mutex_) {
    if (half_closed_) return;
    half_closed_ = true;
    if (!writing_ && outgoing_.empty()) FinishWritesLocked();
  }

  void FinishWritesLocked() RESBM_REQUIRES(mutex_) {
    if (writes_done_) return;
    writes_done_ = true;
    StartWritesDone();
    RemoveHold();
  }

  grpc::ClientContext context_;
  const std::unique_ptr<v1::StageControl::Stub> stub_;
  const Handlers handlers_;
  v1::ControlEvent event_;  // of the read in flight

  Mutex mutex_;
  CondVar done_changed_;
  std::deque<v1::ControlRequest> outgoing_ RESBM_GUARDED_BY(mutex_);
  bool writing_ RESBM_GUARDED_BY(mutex_) = false;
  bool half_closed_ RESBM_GUARDED_BY(mutex_) = false;
  bool writes_done_ RESBM_GUARDED_BY(mutex_) = false;
  bool done_ RESBM_GUARDED_BY(mutex_) = false;
};

StageClient::StageClient(std::string address, std::shared_ptr<grpc::ChannelCredentials> credentials)
    : address_(std::move(address)), channel_(wire::MakeChannel(address_, std::move(credentials))) {}

StageClient::~StageClient() {
  if (session_ != nullptr) session_->Close(absl::ZeroDuration());
}

absl::Status StageClient::WaitForConnected(absl::Duration timeout) {
  if (channel_->WaitForConnected(DeadlineIn(timeout))) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrFormat(
      "no connection to %s; is a stage server listening there, and does a firewall let this machine through?", address_));
}

absl::StatusOr<v1::DescribeReply> StageClient::Describe(absl::Duration timeout) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(timeout));
  v1::DescribeReply reply;
  const grpc::Status status = v1::StageControl::NewStub(channel_)->Describe(&context, v1::DescribeRequest(), &reply);
  if (!status.ok()) return wire::FromGrpc(status);
  return reply;
}

void StageClient::OpenSession(Handlers handlers) { session_ = Session::Open(channel_, std::move(handlers)); }

void StageClient::Send(const v1::ControlRequest& request) {
  if (session_ != nullptr) session_->Send(request);
}

void StageClient::Close(absl::Duration patience) {
  if (session_ != nullptr) session_->Close(patience);
}

absl::StatusOr<std::string> StageClient::DownloadWeights(const std::string& job_id, const v1::Fence& fence,
                                                         std::uint64_t state_id) {
  const auto stub = v1::StageControl::NewStub(channel_);
  std::string weights;
  for (;;) {
    v1::GetShardRequest request;
    request.set_job_id(job_id);
    *request.mutable_fence() = fence;
    request.set_state_id(state_id);
    request.set_offset(weights.size());
    request.set_max_bytes(kShardPieceBytes);
    grpc::ClientContext context;
    context.set_deadline(DeadlineIn(kPieceTimeout));
    v1::GetShardReply reply;
    const grpc::Status status = stub->GetShard(&context, request, &reply);
    if (!status.ok()) return wire::FromGrpc(status);
    weights.append(reply.data());
    if (weights.size() < reply.total_bytes() && reply.data().empty()) {
      return absl::DataLossError(absl::StrFormat("%s sent %d of %d bytes of its weights and then nothing", address_,
                                                 weights.size(), reply.total_bytes()));
    }
    if (weights.size() < reply.total_bytes()) continue;
    if (XXH3_64bits(weights.data(), weights.size()) != reply.hash()) {
      return absl::DataLossError(absl::StrFormat("the weights that %s sent do not have the hash it announced", address_));
    }
    return weights;
  }
}

std::unique_ptr<ShardUpload> StageClient::UploadWeights(const std::string& job_id, const v1::Fence& fence,
                                                       std::string_view weights,
                                                       std::function<void(absl::Status)> done) {
  return std::make_unique<ShardUpload>(channel_, job_id, fence, weights, std::move(done));
}

}  // namespace resbm::coordinator
