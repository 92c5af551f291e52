#include "tests/integration/simulation/simulation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "tests/integration/simulation/sim_stage.h"

namespace resbm::simulation {
namespace {

// No run of a few steps needs a tenth of it.
constexpr std::uint64_t kMostEvents = 400000;

}  // namespace

// The coordinator's end of an outer link; nothing comes back.
class Simulation::FeedEnd : public wire::LinkEndpoint::Listener {
 public:
  FeedEnd(Simulation* simulation, const v1::Fence& fence, int link, v1::Side side)
      : simulation_(simulation), link_(simulation->links_[link].get()), end_(side == v1::UPSTREAM ? 0 : 1) {
    wire::LinkEndpoint::Options options;
    options.job_id = simulation->plan_.job_id;
    options.fence = fence;
    options.link_key = simulation->plan_.stages[0].link_key();
    options.link = static_cast<std::uint32_t>(link);
    options.side = side;
    endpoint_ = std::make_shared<wire::LinkEndpoint>(options, this);
    link_->SetEnd(end_, endpoint_);
  }
  ~FeedEnd() override {
    endpoint_->Shutdown(absl::CancelledError("the simulation is over"));
    link_->ClearEnd(end_);
  }
  wire::LinkEndpoint& endpoint() { return *endpoint_; }
  void OnTensor(wire::ReceivedTensor) override { simulation_->outcome_.violations.push_back("a tensor for the feed"); }
  void OnAllSent() override {}
  void OnConnected() override {}
  void OnDisconnected(const absl::Status&) override {}
  void OnError(const absl::Status& status) override { simulation_->driver_->OnError(status); }

 private:
  Simulation* const simulation_;
  SimLink* const link_;
  const int end_;
  std::shared_ptr<wire::LinkEndpoint> endpoint_;
};

Simulation::Simulation(coordinator::RunPlan plan, std::uint64_t seed, Faults faults)
    : plan_(std::move(plan)), faults_(faults), random_(seed) {
  const int count = static_cast<int>(plan_.stages.size());
  to_stage_.resize(count);
  to_coordinator_.resize(count);
  for (int k = 0; k <= count; ++k) links_.push_back(std::make_unique<SimLink>());
  for (int s = 0; s < count; ++s) {
    plan_.stages[s].set_link_key("0123456789abcdef");
    stages_.push_back(std::make_unique<Stage>(s, clock_, links_[s].get(), links_[s + 1].get(),
                                              [this, s](const v1::ControlEvent& event) {
                                                if (event.has_computed()) NoteComputed(s, event.computed());
                                                to_coordinator_[s].push_back(event);
                                              }));
  }
  driver_ = std::make_unique<coordinator::RunDriver>(plan_, &clock_, this);
}

Simulation::~Simulation() = default;

void Simulation::SendControl(int stage, const v1::ControlRequest& request) { to_stage_[stage].push_back(request); }

void Simulation::UploadWeights(int, const v1::Fence&) {}

void Simulation::OpenFeed(const v1::Fence& fence) {
  inputs_ = std::make_unique<FeedEnd>(this, fence, 0, v1::UPSTREAM);
  targets_ = std::make_unique<FeedEnd>(this, fence, static_cast<int>(plan_.stages.size()), v1::DOWNSTREAM);
}

void Simulation::SendTensors(const v1::TensorHeader& work, const std::vector<std::int64_t>& sizes) {
  const v1::StageSpec& first = plan_.stages.front();
  for (std::size_t m = 0; m < sizes.size(); ++m) {
    v1::TensorHeader header = work;
    header.set_micro_batch(static_cast<std::uint32_t>(m));
    header.set_tensor_count(1);
    EncodedTensor input, target;
    input.codec = target.codec = WireCodec::kRaw;
    input.dtype = WireDtype::kUint8;
    target.dtype = WireDtype::kInt64;
    input.dims = target.dims = {sizes[m]};
    std::size_t bytes = static_cast<std::size_t>(sizes[m]);
    for (std::int64_t d : first.input_shape()) {
      input.dims.push_back(d);
      bytes *= static_cast<std::size_t>(d);
    }
    const char fill = static_cast<char>(3 * work.step() + 5 * work.evaluation() + m);
    input.payload = SharedBytes::CopyOf(std::string(bytes, fill));
    target.payload = SharedBytes::CopyOf(std::string(8 * static_cast<std::size_t>(sizes[m]), fill));
    header.set_kind(v1::INPUT);
    inputs_->endpoint().Send(header, std::move(input));
    header.set_kind(v1::TARGET);
    targets_->endpoint().Send(header, std::move(target));
  }
}

void Simulation::FeedStep(std::int64_t step, const coordinator::StepShape& shape) {
  v1::TensorHeader work;
  work.set_step(static_cast<std::uint64_t>(step));
  SendTensors(work, shape.micro_batches);
}

void Simulation::FeedEvaluation(std::uint64_t evaluation) {
  v1::TensorHeader work;
  work.set_evaluation(evaluation);
  SendTensors(work, plan_.evaluation_micro_batches);
}

void Simulation::ReleaseStep(std::int64_t step) {
  inputs_->endpoint().ReleaseThroughStep(static_cast<std::uint64_t>(step));
  targets_->endpoint().ReleaseThroughStep(static_cast<std::uint64_t>(step));
}

void Simulation::ReleaseEvaluation(std::uint64_t) {
  inputs_->endpoint().ReleaseAll();
  targets_->endpoint().ReleaseAll();
}

void Simulation::OnStep(const coordinator::StepReport& report) {
  ++outcome_.steps;
  outcome_.losses.push_back(report.decision.loss);
  if (report.decision.decision == v1::Commit::SKIP) ++outcome_.skipped;
}

void Simulation::OnEvaluation(const coordinator::EvaluationReport& report) {
  ++outcome_.evaluations;
  outcome_.losses.push_back(report.loss);
}

void Simulation::OnProgress(int, const v1::Progress&) {}

void Simulation::NoteComputed(int stage, const v1::Computed& computed) {
  const auto& fence = computed.attempt().fence();
  auto& bases = bases_[{fence.epoch() << 32 | fence.generation(), computed.attempt().step()}];
  bases.insert(computed.base_state_id());
  if (bases.size() > 1) outcome_.violations.push_back("invariant 1: one attempt, two base states");
  computed_by_[computed.attempt().step()].insert(stage);
}

std::vector<Simulation::Choice> Simulation::Choices() {
  std::vector<Choice> choices;
  for (int s = 0; s < static_cast<int>(stages_.size()); ++s) {
    if (!to_stage_[s].empty()) choices.push_back({Choice::Kind::kToStage, s, 0});
    if (!to_coordinator_[s].empty()) choices.push_back({Choice::Kind::kToCoordinator, s, 0});
    if (stages_[s]->has_work()) choices.push_back({Choice::Kind::kWork, s, 0});
  }
  for (int k = 0; k < static_cast<int>(links_.size()); ++k) {
    if (links_[k]->CanDial()) choices.push_back({Choice::Kind::kDial, k, 0});
    for (int from = 0; from < 2; ++from) {
      if (links_[k]->CanDeliver(from)) choices.push_back({Choice::Kind::kLink, k, from});
    }
  }
  return choices;
}

void Simulation::Happen(const Choice& choice) {
  switch (choice.kind) {
    case Choice::Kind::kToStage: {
      const v1::ControlRequest request = std::move(to_stage_[choice.index].front());
      to_stage_[choice.index].pop_front();
      stages_[choice.index]->OnRequest(request);
      return;
    }
    case Choice::Kind::kToCoordinator: {
      const v1::ControlEvent event = std::move(to_coordinator_[choice.index].front());
      to_coordinator_[choice.index].pop_front();
      driver_->OnEvent(choice.index, event);
      return;
    }
    case Choice::Kind::kWork: return stages_[choice.index]->DoWork();
    case Choice::Kind::kDial: return links_[choice.index]->Dial();
    case Choice::Kind::kLink: {
      const bool spoil = faults_.spoiled_chunks > 0 && Chance(0.02);
      const bool moved = links_[choice.index]->Deliver(choice.from, spoil, random_());
      if (spoil && moved) {
        --faults_.spoiled_chunks;
        ++outcome_.spoiled_chunks;
      }
      if (moved) PassSlowly(faults_.slow_link);
      return;
    }
  }
}

void Simulation::MaybeFault() {
  const int stage = static_cast<int>(Random(stages_.size()));
  if (faults_.link_breaks > 0 && Chance(0.03)) {
    SimLink& link = *links_[Random(links_.size())];
    if (link.connected()) {
      link.Break(absl::UnavailableError("the cable was pulled"));
      --faults_.link_breaks;
      ++outcome_.link_breaks;
    }
  }
  if (faults_.poisoned_steps > 0 && Chance(0.01)) {
    stages_[stage]->computer().PoisonNextBackward();
    --faults_.poisoned_steps;
  }
  if (faults_.lost_sessions > 0 && Chance(0.005)) {
    --faults_.lost_sessions;
    to_stage_[stage].clear();
    to_coordinator_[stage].clear();
    stages_[stage]->LoseSession();
    driver_->OnLost(stage, absl::UnavailableError("the session broke"));
  }
  if (faults_.crashes > 0 && Chance(0.005)) {
    --faults_.crashes;
    to_stage_[stage].clear();
    to_coordinator_[stage].clear();
    stages_[stage]->Crash();
    driver_->OnLost(stage, absl::UnavailableError("the process died"));
  }
}

void Simulation::PassTime(absl::Duration by) {
  clock_.Advance(by);
  for (auto& stage : stages_) stage->OnTick();
  driver_->OnTimer();
}

void Simulation::PassSlowly(absl::Duration by) {
  for (; by > absl::ZeroDuration(); by -= absl::Seconds(1)) {
    PassTime(std::min(by, absl::Seconds(1)));
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      for (const v1::ControlRequest& request : std::exchange(to_stage_[s], {})) stages_[s]->OnRequest(request);
      for (const v1::ControlEvent& event : std::exchange(to_coordinator_[s], {})) {
        driver_->OnEvent(static_cast<int>(s), event);
      }
    }
  }
}

void Simulation::CheckInvariants(const std::string& after) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> states;
  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    Stage& stage = *stages_[s];
    for (std::string& v : stage.TakeViolations()) {
      outcome_.violations.push_back(absl::StrFormat("stage %d after %s: %s", s, after, v));
    }
    const auto& machine = stage.machine();
    if (machine.state_id() != 0) {
      least = std::min(least, machine.step());
      most = std::max(most, machine.step());
      states.insert({machine.step(), machine.state_id()});
    }
    // 2: what one applied, all have computed.
    for (std::uint64_t step = 1; step <= machine.step() && machine.state_id() != 0; ++step) {
      if (computed_by_[step].size() != stages_.size()) {
        outcome_.violations.push_back(absl::StrFormat("invariant 2: step %d applied, not computed by all", step));
      }
    }
    // 8
    const int window = static_cast<int>(plan_.stages[s].windows(static_cast<int>(s)));
    if (stage.computer().live_graphs() > window) outcome_.violations.push_back("invariant 8: graphs over the window");
  }
  if (!states.empty() && most > least + 1) outcome_.violations.push_back("invariant 3: stages two steps apart");
  std::set<std::uint64_t> steps;
  for (const auto& [step, id] : states) {
    if (!steps.insert(step).second) outcome_.violations.push_back("invariant 3: one step, two states");
  }
}

Outcome Simulation::Run() {
  driver_->Start();
  while (!driver_->finished() && outcome_.violations.empty()) {
    if (++outcome_.events > kMostEvents) {
      outcome_.violations.push_back("invariant 11, 13: the run does not end");
      break;
    }
    const std::vector<Choice> choices = Choices();
    // Time passes when nothing else can happen, and now and then anyway.
    if (choices.empty()) {
      PassTime(absl::Milliseconds(500));
    } else {
      Happen(choices[Random(choices.size())]);
      if (Chance(0.02)) PassTime(absl::Milliseconds(1 + static_cast<int>(Random(20))));
    }
    MaybeFault();
    CheckInvariants(absl::StrFormat("event %d", outcome_.events));
  }
  outcome_.status = driver_->result();
  outcome_.time = clock_.Now();
  for (auto& stage : stages_) {
    outcome_.weights.push_back(stage->computer().weights());
    outcome_.most_live_graphs.push_back(stage->computer().most_live_graphs());
    for (const std::string& v : stage->computer().violations()) outcome_.violations.push_back("invariant 7: " + v);
  }
  return outcome_;
}

}  // namespace resbm::simulation
