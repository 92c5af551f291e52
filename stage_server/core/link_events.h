// Where the events of a stage's links go.
#ifndef RESBM_STAGE_SERVER_CORE_LINK_EVENTS_H_
#define RESBM_STAGE_SERVER_CORE_LINK_EVENTS_H_

#include "absl/status/status.h"
#include "proto/resbm/v1/link.pb.h"
#include "proto/wire/link_endpoint.h"
#include "stage_server/core/stage_links.h"

namespace resbm::stage_server {

// Any thread, one at a time per end; must not block.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  virtual void OnTensor(End end, wire::ReceivedTensor tensor) = 0;
  virtual void OnAllSent(const v1::Fence& fence, End end) = 0;
  virtual void OnConnected(const v1::Fence& fence, End end) = 0;
  virtual void OnDisconnected(const v1::Fence& fence, End end, const absl::Status& status) = 0;
  virtual void OnLinkError(const v1::Fence& fence, End end, const absl::Status& status) = 0;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_CORE_LINK_EVENTS_H_
