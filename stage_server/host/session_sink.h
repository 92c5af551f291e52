// The stage's end of one control stream, as the stage sees it.
#ifndef RESBM_STAGE_SERVER_HOST_SESSION_SINK_H_
#define RESBM_STAGE_SERVER_HOST_SESSION_SINK_H_

#include "absl/status/status.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::stage_server {

// Called on the stage's thread; must not block and must not call the stage.
class SessionSink {
 public:
  virtual ~SessionSink() = default;
  virtual void Send(const v1::ControlEvent& event) = 0;
  // Ends the stream once what was sent has left. Calls after the first do nothing.
  virtual void End(const absl::Status& status) = 0;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_HOST_SESSION_SINK_H_
