// What a trace says of the links: who sent how much to whom, and how long that took.
#ifndef RESBM_COORDINATOR_HTML_LINK_USE_H_
#define RESBM_COORDINATOR_HTML_LINK_USE_H_

#include <cstdint>
#include <vector>

#include "coordinator/html/trace_record.h"

namespace resbm::coordinator {

// One direction of one link between stages. Over all traced steps but the first, which warms up, where there are more.
struct LinkUse {
  int from = 0;  // stage
  int to = 0;
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;  // payload of all of them
  // Medians over the tensors: until the connection had taken all of it, and from there the sending began until it was
  // received (0 where the trace does not have both ends).
  double send_us = 0;
  double transit_us = 0;

  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

// By sender, then receiver. Links that carried nothing are left out.
std::vector<LinkUse> LinkUses(const TraceRecord& trace);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_HTML_LINK_USE_H_
