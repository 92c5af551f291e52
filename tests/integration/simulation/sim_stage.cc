#include "tests/integration/simulation/sim_stage.h"

#include <utility>

#include "absl/strings/str_format.h"

namespace resbm::simulation {

using stage_server::End;
using stage_server::State;

class Simulation::Stage::Ear : public wire::LinkEndpoint::Listener {
 public:
  Ear(Stage* stage, End end, const stage_server::LinkSetup& setup) : stage_(stage), end_(end), fence_(setup.fence) {
    wire::LinkEndpoint::Options options;
    options.job_id = setup.job_id;
    options.fence = setup.fence;
    options.link_key = setup.link_key;
    options.link = setup.stage + (end == End::kUp ? 0 : 1);
    options.side = stage_server::SideAt(end);
    endpoint_ = std::make_shared<wire::LinkEndpoint>(options, this);
    // This stage is the downstream end of the link above it.
    stage->links_[static_cast<int>(end)]->SetEnd(end == End::kUp ? 1 : 0, endpoint_);
  }
  ~Ear() override { stage_->links_[static_cast<int>(end_)]->ClearEnd(end_ == End::kUp ? 1 : 0); }

  wire::LinkEndpoint& endpoint() { return *endpoint_; }

  void OnTensor(wire::ReceivedTensor tensor) override {
    stage_->During("a tensor", false, [&] {
      stage_->machine_->OnTensor(end_, tensor.header, std::move(tensor.tensor));
    });
  }
  void OnAllSent() override { Changed(); }
  void OnConnected() override { Changed(); }
  void OnDisconnected(const absl::Status&) override { Changed(); }
  void OnError(const absl::Status& status) override {
    stage_->During("a link error", false, [&] { stage_->machine_->OnLinkError(fence_, end_, status); });
  }

 private:
  void Changed() {
    stage_->During("a link change", false, [&] { stage_->machine_->OnLinkChanged(); });
  }

  Stage* const stage_;
  const End end_;
  const v1::Fence fence_;
  std::shared_ptr<wire::LinkEndpoint> endpoint_;
};

Simulation::Stage::Stage(int index, const Clock& clock, SimLink* up, SimLink* down, EmitFunction emit)
    : index_(index), clock_(clock), links_{up, down}, emit_(std::move(emit)) {
  MakeMachine();
}

Simulation::Stage::~Stage() {
  for (auto& ear : ears_) {
    if (ear != nullptr) ear->endpoint().Shutdown(absl::CancelledError("the simulation is over"));
  }
}

void Simulation::Stage::MakeMachine() {
  stage_server::StageMachineOptions options;
  options.incarnation = ++incarnation_;
  computer_ = std::make_unique<FakeComputer>();
  machine_ = std::make_unique<stage_server::StageMachine>(options, clock_, this, this);
}

void Simulation::Stage::During(const char* event, bool may_leave_computed, const std::function<void()>& body) {
  const State before = machine_->state();
  body();
  const State after = machine_->state();
  if (before == State::kComputed && after != State::kComputed && !may_leave_computed) {
    violations_.push_back(absl::StrFormat("invariant 5: %s led from COMPUTED to %s", event,
                                          stage_server::StateName(after)));
  }
  const v1::Fence& fence = machine_->tenancy().fence();
  const std::pair<std::uint64_t, std::uint64_t> now = {fence.epoch(), fence.generation()};
  if (!machine_->tenancy().free()) {
    if (now < fence_) violations_.push_back("invariant 6: the fence fell");
    fence_ = now;
  }
}

void Simulation::Stage::OnRequest(const v1::ControlRequest& request) {
  const bool may_leave = request.has_commit() || request.has_attach() || request.has_release() || request.has_resume();
  During("a request", may_leave, [&] { machine_->OnRequest(session_, request); });
}

void Simulation::Stage::DoWork() {
  const stage_server::Work work = *std::exchange(work_, std::nullopt);
  stage_server::WorkResult result = computer_->Run(work);
  result.began = clock_.Now();
  During("work", false, [&] { machine_->OnWorkDone(std::move(result)); });
}

void Simulation::Stage::OnTick() {
  During("a tick", !machine_->tenancy().attached(), [&] { machine_->OnTick(); });
}

void Simulation::Stage::LoseSession() {
  During("a lost session", false, [&] { machine_->OnSessionClosed(session_); });
  ++session_;
}

void Simulation::Stage::Crash() {
  Close(absl::UnavailableError("the process died"));
  work_.reset();
  fence_ = {0, 0};
  ++session_;
  MakeMachine();
}

void Simulation::Stage::Emit(stage_server::SessionId session, const v1::ControlEvent& event) {
  if (session == session_) emit_(event);
}

void Simulation::Stage::EndSession(stage_server::SessionId, const absl::Status&) {}

void Simulation::Stage::Start(stage_server::Work work) {
  if (work_.has_value()) violations_.push_back("two pieces of work at once");
  work_ = std::move(work);
}

void Simulation::Stage::Open(const stage_server::LinkSetup& setup) {
  Close(absl::CancelledError("a newer fence"));
  for (End end : stage_server::kEnds) ears_[static_cast<int>(end)] = std::make_unique<Ear>(this, end, setup);
}

void Simulation::Stage::Close(const absl::Status& status) {
  for (auto& ear : ears_) {
    if (ear != nullptr) ear->endpoint().Shutdown(status);
    ear.reset();
  }
}

// Calls on links that are not open do nothing.
#define RESBM_IF_OPEN(end) \
  if (auto& ear = ears_[static_cast<int>(end)]; ear != nullptr) ear->endpoint()

void Simulation::Stage::Expect(End end, const v1::TensorHeader& header) { RESBM_IF_OPEN(end).Expect(header); }
void Simulation::Stage::SetInboxLimit(End end, std::uint32_t tensors, bool hard) {
  RESBM_IF_OPEN(end).SetInboxLimit(tensors, hard);
}
void Simulation::Stage::Consumed(End end) { RESBM_IF_OPEN(end).Consumed(); }
void Simulation::Stage::Send(End end, const v1::TensorHeader& header, EncodedTensor tensor) {
  RESBM_IF_OPEN(end).Send(header, std::move(tensor));
}
void Simulation::Stage::ReleaseMicroBatch(End end, std::uint64_t step, std::uint32_t micro_batch) {
  RESBM_IF_OPEN(end).ReleaseMicroBatch(step, micro_batch);
}
void Simulation::Stage::ReleaseThroughStep(End end, std::uint64_t step) {
  RESBM_IF_OPEN(end).ReleaseThroughStep(step);
}
void Simulation::Stage::ReleaseAll(End end) { RESBM_IF_OPEN(end).ReleaseAll(); }
void Simulation::Stage::RecordTransfers(End end, bool on) {
  RESBM_IF_OPEN(end).RecordTransfers(on ? &clock_ : nullptr);
}
std::vector<wire::Transfer> Simulation::Stage::TakeTransfers(End end, std::uint64_t step) {
  const auto& ear = ears_[static_cast<int>(end)];
  if (ear == nullptr) return {};
  return ear->endpoint().TakeTransfers(step);
}
bool Simulation::Stage::AllSent(End end) const {
  const auto& ear = ears_[static_cast<int>(end)];
  return ear == nullptr || ear->endpoint().AllSent();
}
bool Simulation::Stage::Connected(End end) const {
  const auto& ear = ears_[static_cast<int>(end)];
  return ear != nullptr && ear->endpoint().connected();
}
std::uint64_t Simulation::Stage::RetainedBytes(End end) const {
  const auto& ear = ears_[static_cast<int>(end)];
  return ear == nullptr ? 0 : ear->endpoint().retained_bytes();
}
stage_server::LinkCounters Simulation::Stage::Counters(End end) const {
  stage_server::LinkCounters out;
  if (const auto& ear = ears_[static_cast<int>(end)]; ear != nullptr) {
    const auto c = ear->endpoint().counters();
    out.payload_bytes = c.payload_bytes_sent;
    out.metadata_bytes = c.metadata_bytes_sent;
    out.messages = c.messages_sent;
    out.moved_bytes = c.payload_bytes_sent - c.payload_bytes_resent + c.payload_bytes_received;
  }
  return out;
}

#undef RESBM_IF_OPEN

}  // namespace resbm::simulation
