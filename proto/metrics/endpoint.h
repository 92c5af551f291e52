// http://HOST:PORT/metrics, for Prometheus to read. Served by prometheus-cpp's Exposer on two threads of its own.
#ifndef RESBM_PROTO_METRICS_ENDPOINT_H_
#define RESBM_PROTO_METRICS_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <prometheus/metric_family.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace prometheus {
class Exposer;
}

namespace resbm::metrics {

class Endpoint {
 public:
  // Called for every scrape, on the endpoint's threads, also by both at once.
  using Collect = std::function<std::vector<prometheus::MetricFamily>()>;

  // INVALID_ARGUMENT: `address` is not HOST:PORT. UNAVAILABLE: the port is taken, or the host is not this machine.
  // Port 0 takes a free one.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Listen(absl::string_view address, Collect collect);
  // Waits for the scrape that is being answered; no call of `collect` follows.
  ~Endpoint();

  // With the port that was taken.
  const std::string& address() const { return address_; }

 private:
  class Collector;

  Endpoint() = default;

  std::string address_;
  std::shared_ptr<Collector> collector_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

// Of an option such as --metrics-listen. INVALID_ARGUMENT: `address` is not HOST:PORT, or other machines reach it and
// `insecure` is false. `option` is for the message.
absl::Status CheckAddress(absl::string_view option, absl::string_view address, bool insecure);

}  // namespace resbm::metrics

#endif  // RESBM_PROTO_METRICS_ENDPOINT_H_
