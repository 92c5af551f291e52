#include "proto/metrics/endpoint.h"

#include <exception>
#include <utility>

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include "absl/strings/str_cat.h"
#include "proto/base/host_port.h"
#include "proto/base/status.h"

namespace resbm::metrics {

class Endpoint::Collector : public prometheus::Collectable {
 public:
  explicit Collector(Endpoint::Collect collect) : collect_(std::move(collect)) {}
  std::vector<prometheus::MetricFamily> Collect() const override { return collect_(); }

 private:
  const Endpoint::Collect collect_;
};

absl::StatusOr<std::unique_ptr<Endpoint>> Endpoint::Listen(absl::string_view address, Collect collect) {
  RESBM_ASSIGN_OR_RETURN(HostPort where, ParseHostPort(address));
  auto endpoint = std::unique_ptr<Endpoint>(new Endpoint());
  try {
    // A client that says nothing gives its thread back.
    endpoint->exposer_ = std::make_unique<prometheus::Exposer>(std::vector<std::string>{
        "listening_ports", ToString(where), "num_threads", "2", "request_timeout_ms", "10000"});
  } catch (const std::exception&) {
    // It says nothing more than that it failed.
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", address,
        ": the port is taken, or the address is not this machine's; stop the other program, or give another (port 0 "
        "takes a free one)"));
  }
  const std::vector<int> ports = endpoint->exposer_->GetListeningPorts();
  if (ports.empty()) return absl::InternalError(absl::StrCat("no port is open for ", address));
  where.port = ports.front();
  endpoint->address_ = ToString(where);
  endpoint->collector_ = std::make_shared<Collector>(std::move(collect));
  endpoint->exposer_->RegisterCollectable(endpoint->collector_);
  return endpoint;
}

Endpoint::~Endpoint() = default;

absl::Status CheckAddress(absl::string_view option, absl::string_view address, bool insecure) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return absl::InvalidArgumentError(absl::StrCat(option, " ", parsed.status().message()));
  if (!IsLoopback(parsed->host) && !insecure) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", address,
                     " can be read by other machines, without encryption or authentication: listen on "
                     "127.0.0.1, or add --insecure if you trust that network"));
  }
  return absl::OkStatus();
}

}  // namespace resbm::metrics
