// Statuses between Abseil and gRPC: the codes have the same numbers.
#ifndef RESBM_PROTO_WIRE_GRPC_STATUS_H_
#define RESBM_PROTO_WIRE_GRPC_STATUS_H_

#include <string>

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace resbm::wire {

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

inline absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace resbm::wire

#endif  // RESBM_PROTO_WIRE_GRPC_STATUS_H_
