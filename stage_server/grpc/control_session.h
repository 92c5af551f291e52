// One StageControl.Session stream: always reading, writes queued.
#ifndef RESBM_STAGE_SERVER_GRPC_CONTROL_SESSION_H_
#define RESBM_STAGE_SERVER_GRPC_CONTROL_SESSION_H_

#include <deque>
#include <memory>
#include <optional>

#include <grpcpp/grpcpp.h>

#include "proto/base/mutex.h"
#include "proto/resbm/v1/control.pb.h"
#include "stage_server/host/session_sink.h"
#include "stage_server/host/stage.h"

namespace resbm::stage_server {

// Keeps itself alive until OnDone. Its mutex is held while operations are started (gRPC runs their reactions
// on its own threads, never inside the starting call), never while the stage is called.
class ControlSession : public grpc::ServerBidiReactor<v1::ControlRequest, v1::ControlEvent>,
                       public SessionSink,
                       public std::enable_shared_from_this<ControlSession> {
 public:
  static ControlSession* Start(Stage* stage);

  // SessionSink.
  void Send(const v1::ControlEvent& event) override RESBM_EXCLUDES(mutex_);
  void End(const absl::Status& status) override RESBM_EXCLUDES(mutex_);

  // Reactions.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override RESBM_EXCLUDES(mutex_);
  void OnDone() override;

 private:
  explicit ControlSession(Stage* stage) : stage_(stage) {}

  void ReadNext() RESBM_EXCLUDES(mutex_);
  void GoOnLocked() RESBM_REQUIRES(mutex_);

  Stage* const stage_;
  SessionId id_ = 0;
  std::shared_ptr<ControlSession> self_;
  v1::ControlRequest request_;  // of the read in flight

  Mutex mutex_;
  std::deque<v1::ControlEvent> outgoing_ RESBM_GUARDED_BY(mutex_);
  bool writing_ RESBM_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ RESBM_GUARDED_BY(mutex_);
  bool finished_ RESBM_GUARDED_BY(mutex_) = false;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_GRPC_CONTROL_SESSION_H_
