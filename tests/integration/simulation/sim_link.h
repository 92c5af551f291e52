// The network of the simulation: real LinkEndpoints joined by connections whose every message is an event
// that the simulation lets happen, delays, spoils or loses together with the connection.
#ifndef RESBM_TESTS_INTEGRATION_SIMULATION_SIM_LINK_H_
#define RESBM_TESTS_INTEGRATION_SIMULATION_SIM_LINK_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "proto/wire/link_endpoint.h"

namespace resbm::simulation {

// One end's stream object. What the endpoint asks for is remembered, nothing is done at once.
class SimConnection : public wire::LinkConnection {
 public:
  void WakeWriter() override {}
  void WakeReader() override { held_ = false; }
  void Close(const absl::Status& status) override {
    if (!closed_.has_value()) closed_ = status;
  }

  bool held() const { return held_; }
  void Hold() { held_ = true; }
  const std::optional<absl::Status>& closed() const { return closed_; }

 private:
  bool held_ = false;
  std::optional<absl::Status> closed_;
};

// A link and its present connection, if any. Ends: 0 upstream, 1 downstream.
class SimLink {
 public:
  void SetEnd(int end, std::shared_ptr<wire::LinkEndpoint> endpoint);
  void ClearEnd(int end);

  bool CanDial() const;
  // The upstream end dials; Hellos are on their way afterwards.
  void Dial();
  bool connected() const { return connections_[0] != nullptr; }
  // Both ends learn that the stream is over; messages in the air are lost.
  void Break(const absl::Status& status);

  // Something of `from` can be put into the air, or taken out of it at the other end.
  bool CanDeliver(int from) const;
  // Writes one message of `from` if it has one, and delivers the oldest in the air. `spoil`: with one byte
  // changed. Returns false if nothing could be done.
  bool Deliver(int from, bool spoil, std::uint64_t random);
  // A close that an endpoint asked for takes effect.
  bool Settle();

 private:
  // Message bytes as the peer would get them.
  struct InAir {
    std::string bytes;
  };

  void Receive(int at, const std::string& bytes);

  std::shared_ptr<wire::LinkEndpoint> endpoints_[2];
  std::shared_ptr<SimConnection> connections_[2];
  std::deque<InAir> air_[2];  // from end 0, from end 1
  int hellos_[2] = {0, 0};    // in the air, the oldest
  std::uint64_t dials_ = 0;
};

}  // namespace resbm::simulation

#endif  // RESBM_TESTS_INTEGRATION_SIMULATION_SIM_LINK_H_
