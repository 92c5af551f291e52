#include "stage_server/host/endpoint_links.h"

#include <utility>

namespace resbm::stage_server {

// An endpoint and its listener live together: a stream that still holds the endpoint keeps the listener.
struct EndpointLinks::Line : wire::LinkEndpoint::Listener {
  Line(End end, wire::LinkEndpoint::Options options, LinkEvents* events)
      : end(end), fence(options.fence), events(events), endpoint(std::move(options), this) {}

  void OnTensor(wire::ReceivedTensor tensor) override { events->OnTensor(end, std::move(tensor)); }
  void OnAllSent() override { events->OnAllSent(fence, end); }
  void OnConnected() override { events->OnConnected(fence, end); }
  void OnDisconnected(const absl::Status& status) override { events->OnDisconnected(fence, end, status); }
  void OnError(const absl::Status& status) override { events->OnLinkError(fence, end, status); }

  const End end;
  const v1::Fence fence;
  LinkEvents* const events;
  wire::LinkEndpoint endpoint;
  std::unique_ptr<Dialler> dialler;
};

EndpointLinks::EndpointLinks(const Clock& clock, DiallerFactory* diallers, LinkEvents* events)
    : clock_(clock), diallers_(diallers), events_(events) {}

EndpointLinks::~EndpointLinks() { Close(absl::CancelledError("the stage server stops")); }

void EndpointLinks::Open(const LinkSetup& setup) {
  Close(absl::AbortedError("the links were opened again"));
  for (End end : kEnds) {
    wire::LinkEndpoint::Options options;
    options.job_id = setup.job_id;
    options.fence = setup.fence;
    options.link_key = setup.link_key;
    options.link = setup.stage + (end == End::kUp ? 0 : 1);
    options.side = SideAt(end);
    lines_[static_cast<int>(end)] = std::make_shared<Line>(end, std::move(options), events_);
  }
  for (End end : kEnds) {
    // The coordinator always dials the outer links.
    const bool outer = end == End::kUp ? setup.stage == 0 : setup.stage + 1 == setup.stages;
    const v1::Neighbour& neighbour = end == End::kUp ? setup.up : setup.down;
    if (outer || neighbour.address().empty()) continue;
    line(end)->dialler = diallers_->Dial(neighbour, endpoint(end));
  }
}

void EndpointLinks::Close(const absl::Status& status) {
  for (End end : kEnds) {
    std::shared_ptr<Line>& line = lines_[static_cast<int>(end)];
    if (line == nullptr) continue;
    line->dialler.reset();
    // Shut down, it has forgotten its tensors.
    closed_[static_cast<int>(end)].Add(line->endpoint.counters());
    line->endpoint.Shutdown(status);
    line.reset();
  }
}

void EndpointLinks::Expect(End end, const v1::TensorHeader& header) {
  if (line(end) != nullptr) line(end)->endpoint.Expect(header);
}
void EndpointLinks::SetInboxLimit(End end, std::uint32_t tensors, bool hard) {
  if (line(end) != nullptr) line(end)->endpoint.SetInboxLimit(tensors, hard);
}
void EndpointLinks::Consumed(End end) {
  if (line(end) != nullptr) line(end)->endpoint.Consumed();
}
void EndpointLinks::Send(End end, const v1::TensorHeader& header, EncodedTensor tensor) {
  if (line(end) != nullptr) line(end)->endpoint.Send(header, std::move(tensor));
}
void EndpointLinks::ReleaseMicroBatch(End end, std::uint64_t step, std::uint32_t micro_batch) {
  if (line(end) != nullptr) line(end)->endpoint.ReleaseMicroBatch(step, micro_batch);
}
void EndpointLinks::ReleaseThroughStep(End end, std::uint64_t step) {
  if (line(end) != nullptr) line(end)->endpoint.ReleaseThroughStep(step);
}
void EndpointLinks::ReleaseAll(End end) {
  if (line(end) != nullptr) line(end)->endpoint.ReleaseAll();
}
bool EndpointLinks::AllSent(End end) const { return line(end) == nullptr || line(end)->endpoint.AllSent(); }
bool EndpointLinks::Connected(End end) const { return line(end) != nullptr && line(end)->endpoint.connected(); }
std::uint64_t EndpointLinks::RetainedBytes(End end) const {
  return line(end) == nullptr ? 0 : line(end)->endpoint.retained_bytes();
}
LinkCounters EndpointLinks::Counters(End end) const {
  if (line(end) == nullptr) return {};
  const wire::LinkEndpoint::Counters counters = line(end)->endpoint.counters();
  return {counters.payload_bytes_sent, counters.metadata_bytes_sent, counters.messages_sent,
          counters.payload_bytes_sent - counters.payload_bytes_resent + counters.payload_bytes_received};
}

void EndpointLinks::RecordTransfers(End end, bool on) {
  if (line(end) != nullptr) line(end)->endpoint.RecordTransfers(on ? &clock_ : nullptr);
}
std::vector<wire::Transfer> EndpointLinks::TakeTransfers(End end, std::uint64_t step) {
  if (line(end) == nullptr) return {};
  return line(end)->endpoint.TakeTransfers(step);
}

LinkTotals EndpointLinks::Totals(End end) const {
  LinkTotals totals = closed_[static_cast<int>(end)];
  if (line(end) != nullptr) totals.Add(line(end)->endpoint.counters());
  return totals;
}

std::optional<v1::LinkState> EndpointLinks::Describe(End end) const {
  if (line(end) == nullptr) return std::nullopt;
  const wire::LinkEndpoint::Counters counters = line(end)->endpoint.counters();
  v1::LinkState state;
  state.set_connected(Connected(end));
  state.set_connections(counters.connections);
  state.set_sent_bytes(counters.payload_bytes_sent);
  state.set_received_bytes(counters.payload_bytes_received);
  state.set_retained_bytes(RetainedBytes(end));
  state.set_inbox_tensors(counters.inbox_tensors);
  return state;
}

std::shared_ptr<wire::LinkEndpoint> EndpointLinks::endpoint(End end) const {
  const std::shared_ptr<Line>& line = lines_[static_cast<int>(end)];
  if (line == nullptr) return nullptr;
  return std::shared_ptr<wire::LinkEndpoint>(line, &line->endpoint);
}

}  // namespace resbm::stage_server
