// What crossed one end of a stage over the life of its process: each fence has endpoints of its own, which count from
// 0.
#ifndef RESBM_STAGE_SERVER_METRICS_LINK_TOTALS_H_
#define RESBM_STAGE_SERVER_METRICS_LINK_TOTALS_H_

#include <cstdint>

#include "proto/wire/link_endpoint.h"

namespace resbm::stage_server {

struct LinkTotals {
  std::uint64_t payload_bytes_sent = 0;  // resent ones included
  std::uint64_t payload_bytes_resent = 0;
  std::uint64_t payload_bytes_received = 0;
  std::uint64_t metadata_bytes_sent = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t tensors_sent = 0;
  std::uint64_t tensors_received = 0;
  std::uint64_t connections = 0;
  // Those after the first of a fence: the link broke and came back.
  std::uint64_t reconnections = 0;

  void Add(const wire::LinkEndpoint::Counters& endpoint) {
    payload_bytes_sent += endpoint.payload_bytes_sent;
    payload_bytes_resent += endpoint.payload_bytes_resent;
    payload_bytes_received += endpoint.payload_bytes_received;
    metadata_bytes_sent += endpoint.metadata_bytes_sent;
    messages_sent += endpoint.messages_sent;
    tensors_sent += endpoint.tensors_sent;
    tensors_received += endpoint.tensors_received;
    connections += endpoint.connections;
    if (endpoint.connections > 1) reconnections += endpoint.connections - 1;
  }
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_METRICS_LINK_TOTALS_H_
