#include "tests/integration/simulation/sim_link.h"

#include <utility>

namespace resbm::simulation {

void SimLink::SetEnd(int end, std::shared_ptr<wire::LinkEndpoint> endpoint) {
  ClearEnd(end);
  endpoints_[end] = std::move(endpoint);
}

void SimLink::ClearEnd(int end) {
  if (connected()) Break(absl::UnavailableError("the peer went away"));
  endpoints_[end].reset();
}

bool SimLink::CanDial() const {
  if (connected() || endpoints_[0] == nullptr || endpoints_[1] == nullptr) return false;
  const v1::Fence& a = endpoints_[0]->options().fence;
  const v1::Fence& b = endpoints_[1]->options().fence;
  return a.epoch() == b.epoch() && a.generation() == b.generation();
}

void SimLink::Dial() {
  ++dials_;
  for (int end = 0; end < 2; ++end) {
    auto connection = std::make_shared<SimConnection>();
    auto hello = endpoints_[end]->Connect(connection, dials_);
    if (!hello.ok()) {  // the endpoint is dead
      if (end == 1) endpoints_[0]->OnClosed(connections_[0].get(), absl::UnavailableError("refused"));
      connections_[0].reset();
      air_[0].clear();
      return;
    }
    connections_[end] = connection;
    air_[end].clear();
    air_[end].push_back({hello->prefix + std::string(hello->payload.view())});
    hellos_[end] = 1;
  }
}

void SimLink::Break(const absl::Status& status) {
  for (int end = 0; end < 2; ++end) {
    air_[end].clear();
    const auto connection = std::exchange(connections_[end], nullptr);
    if (connection == nullptr || endpoints_[end] == nullptr) continue;
    if (!connection->closed().has_value()) endpoints_[end]->OnClosed(connection.get(), status);
  }
}

bool SimLink::Settle() {
  for (int end = 0; end < 2; ++end) {
    if (connections_[end] != nullptr && connections_[end]->closed().has_value()) {
      Break(*connections_[end]->closed());
      return true;
    }
  }
  return false;
}

bool SimLink::CanDeliver(int from) const { return connected() && !connections_[1 - from]->held(); }

bool SimLink::Deliver(int from, bool spoil, std::uint64_t random) {
  if (!connected()) return false;
  const auto sender = connections_[from];
  if (auto message = endpoints_[from]->NextMessage(sender.get())) {
    air_[from].push_back({message->prefix + std::string(message->payload.view())});
    endpoints_[from]->OnMessageWritten(sender.get());
  }
  if (Settle() || !connected()) return true;
  const int at = 1 - from;
  if (air_[from].empty() || connections_[at]->held()) return false;
  std::string bytes = air_[from].front().bytes;
  // A Hello has no checksum, and TCP has one: only tensors are spoiled.
  if (spoil && hellos_[from] == 0) bytes[random % bytes.size()] = static_cast<char>(bytes[random % bytes.size()] ^ (1 + random % 255));
  Receive(at, bytes);
  // A held message stays the oldest in the air.
  if (connected() && !connections_[at]->held() && !air_[from].empty()) {
    air_[from].pop_front();
    hellos_[from] = 0;
  }
  Settle();
  return true;
}

void SimLink::Receive(int at, const std::string& bytes) {
  const auto connection = connections_[at];
  // In two pieces, as a transport might.
  const std::string_view view = bytes;
  const std::string_view pieces[] = {view.substr(0, bytes.size() / 3), view.substr(bytes.size() / 3)};
  auto message = wire::ParseLinkMessage(pieces);
  if (!message.ok()) {
    Break(message.status());
    return;
  }
  if (message->hello != nullptr) {
    const absl::Status status = endpoints_[at]->OnHello(connection.get(), *message->hello);
    if (!status.ok()) Break(status);
    return;
  }
  if (message->chunk == nullptr) return;
  const auto taken = endpoints_[at]->OnChunk(connection.get(), *message->chunk);
  if (taken.ok() && *taken == wire::LinkEndpoint::Taken::kHold) connection->Hold();
  if (!taken.ok()) Break(taken.status());
}

}  // namespace resbm::simulation
