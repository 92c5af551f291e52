// One stage of the simulation: the real StageMachine and LinkEndpoints around a FakeComputer.
#ifndef RESBM_TESTS_INTEGRATION_SIMULATION_SIM_STAGE_H_
#define RESBM_TESTS_INTEGRATION_SIMULATION_SIM_STAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "stage_server/core/stage_machine.h"
#include "tests/integration/simulation/fake_computer.h"
#include "tests/integration/simulation/sim_link.h"
#include "tests/integration/simulation/simulation.h"

namespace resbm::simulation {

class Simulation::Stage : public stage_server::StageEffects, public stage_server::StageLinks {
 public:
  using EmitFunction = std::function<void(const v1::ControlEvent&)>;

  Stage(int index, const Clock& clock, SimLink* up, SimLink* down, EmitFunction emit);
  ~Stage() override;

  // ---- events of the simulation
  void OnRequest(const v1::ControlRequest& request);
  bool has_work() const { return work_.has_value(); }
  void DoWork();
  void OnTick();
  void LoseSession();
  // The process dies and is started again, with nothing.
  void Crash();

  const stage_server::StageMachine& machine() const { return *machine_; }
  FakeComputer& computer() { return *computer_; }
  std::vector<std::string> TakeViolations() { return std::exchange(violations_, {}); }

  // ---- stage_server::StageEffects
  void Emit(stage_server::SessionId session, const v1::ControlEvent& event) override;
  void EndSession(stage_server::SessionId session, const absl::Status& status) override;
  void Start(stage_server::Work work) override;

  // ---- stage_server::StageLinks
  void Open(const stage_server::LinkSetup& setup) override;
  void Close(const absl::Status& status) override;
  void Expect(stage_server::End end, const v1::TensorHeader& header) override;
  void SetInboxLimit(stage_server::End end, std::uint32_t tensors, bool hard) override;
  void Consumed(stage_server::End end) override;
  void Send(stage_server::End end, const v1::TensorHeader& header, EncodedTensor tensor) override;
  void ReleaseMicroBatch(stage_server::End end, std::uint64_t step, std::uint32_t micro_batch) override;
  void ReleaseThroughStep(stage_server::End end, std::uint64_t step) override;
  void ReleaseAll(stage_server::End end) override;
  bool AllSent(stage_server::End end) const override;
  bool Connected(stage_server::End end) const override;
  std::uint64_t RetainedBytes(stage_server::End end) const override;
  stage_server::LinkCounters Counters(stage_server::End end) const override;
  void RecordTransfers(stage_server::End end, bool on) override;
  std::vector<wire::Transfer> TakeTransfers(stage_server::End end, std::uint64_t step) override;

 private:
  // Hears one of the endpoints.
  class Ear;

  void MakeMachine();
  // Runs an event and checks what the machine's state did.
  void During(const char* event, bool may_leave_computed, const std::function<void()>& body);

  const int index_;
  const Clock& clock_;
  SimLink* const links_[2];  // by End
  const EmitFunction emit_;
  std::uint64_t incarnation_ = 0;
  stage_server::SessionId session_ = 1;
  std::unique_ptr<FakeComputer> computer_;
  std::unique_ptr<stage_server::StageMachine> machine_;
  std::unique_ptr<Ear> ears_[2];
  std::optional<stage_server::Work> work_;
  std::vector<std::string> violations_;
  // Highest fence so far in this life.
  std::pair<std::uint64_t, std::uint64_t> fence_;
};

}  // namespace resbm::simulation

#endif  // RESBM_TESTS_INTEGRATION_SIMULATION_SIM_STAGE_H_
