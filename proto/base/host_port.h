// "127.0.0.1:50051", as options and job files write an address.
#ifndef RESBM_PROTO_BASE_HOST_PORT_H_
#define RESBM_PROTO_BASE_HOST_PORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace resbm {

struct HostPort {
  std::string host;  // without brackets
  int port = 0;      // 0 to 65535
};

// "127.0.0.1:50051", "[::1]:0", "host-a:7001". INVALID_ARGUMENT: it is none.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);

// The same as text.
std::string ToString(const HostPort& address);

// That only this machine reaches it.
bool IsLoopback(absl::string_view host);

}  // namespace resbm

#endif  // RESBM_PROTO_BASE_HOST_PORT_H_
