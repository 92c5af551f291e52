#include "stage_server/grpc/control_session.h"

#include <utility>

#include "proto/wire/grpc_status.h"

namespace resbm::stage_server {
namespace {

// A peer that does not read loses Progress first; that many other events it would never leave unread.
constexpr std::size_t kMaxQueuedProgress = 16;
constexpr std::size_t kMaxQueuedEvents = 1024;

}  // namespace

ControlSession* ControlSession::Start(Stage* stage) {
  const std::shared_ptr<ControlSession> session(new ControlSession(stage));
  session->self_ = session;
  session->id_ = stage->OpenSession(session);
  session->ReadNext();
  return session.get();
}

void ControlSession::ReadNext() {
  MutexLock lock(mutex_);
  if (!finished_) StartRead(&request_);
}

void ControlSession::OnReadDone(bool ok) {
  if (!ok) {
    // The peer is gone, or has said its last word.
    stage_->CloseSession(id_);
    End(absl::OkStatus());
    return;
  }
  stage_->Request(id_, std::move(request_), [self = shared_from_this()] {
    self->request_.Clear();
    self->ReadNext();
  });
}

void ControlSession::Send(const v1::ControlEvent& event) {
  MutexLock lock(mutex_);
  if (end_.has_value()) return;
  if (event.has_progress() && outgoing_.size() >= kMaxQueuedProgress) return;
  if (outgoing_.size() >= kMaxQueuedEvents) {
    end_ = absl::ResourceExhaustedError("the coordinator does not read its control stream");
    return;
  }
  outgoing_.push_back(event);
  GoOnLocked();
}

void ControlSession::End(const absl::Status& status) {
  MutexLock lock(mutex_);
  if (end_.has_value()) return;
  end_ = status;
  GoOnLocked();
}

void ControlSession::OnWriteDone(bool ok) {
  MutexLock lock(mutex_);
  writing_ = false;
  outgoing_.pop_front();
  if (!ok) outgoing_.clear();
  GoOnLocked();
}

void ControlSession::GoOnLocked() {
  if (writing_ || finished_) return;
  if (!outgoing_.empty()) {
    writing_ = true;
    StartWrite(&outgoing_.front());
  } else if (end_.has_value()) {
    finished_ = true;
    Finish(wire::ToGrpc(*end_));
  }
}

void ControlSession::OnDone() {
  stage_->CloseSession(id_);
  self_.reset();
}

}  // namespace resbm::stage_server
