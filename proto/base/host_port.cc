#include "proto/base/host_port.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace resbm {

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text) {
  const std::size_t colon = text.rfind(':');
  HostPort result;
  if (colon == absl::string_view::npos || colon == 0 || !absl::SimpleAtoi(text.substr(colon + 1), &result.port) ||
      result.port < 0 || result.port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not HOST:PORT"));
  }
  absl::string_view host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (absl::StrContains(host, ':')) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\": write an IPv6 address as [ADDRESS]:PORT"));
  }
  result.host = std::string(host);
  return result;
}

std::string ToString(const HostPort& address) {
  const bool v6 = absl::StrContains(address.host, ':');
  return absl::StrCat(v6 ? "[" : "", address.host, v6 ? "]" : "", ":", address.port);
}

bool IsLoopback(absl::string_view host) {
  return host == "localhost" || host == "::1" || absl::StartsWith(host, "127.");
}

}  // namespace resbm
