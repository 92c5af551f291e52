// A whole run in one thread: the real RunDriver, StageMachines and LinkEndpoints, a fake clock, fake links
// and FakeComputers. A seed decides which of the things that could happen next does: any delivery, any piece
// of work, a broken link, a spoiled chunk, a lost session, a crash. After every event the invariants of
// docs/protocol.md that can be seen from outside are checked.
#ifndef RESBM_TESTS_INTEGRATION_SIMULATION_SIMULATION_H_
#define RESBM_TESTS_INTEGRATION_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/run/run_driver.h"
#include "proto/base/clock.h"
#include "stage_server/core/stage_machine.h"
#include "tests/integration/simulation/fake_computer.h"
#include "tests/integration/simulation/sim_link.h"

namespace resbm::simulation {

struct Faults {
  int link_breaks = 0;
  int spoiled_chunks = 0;
  int lost_sessions = 0;
  int crashes = 0;        // of a stage: its memory is gone
  int poisoned_steps = 0;  // a non-finite value in some backward
  // What every message on a link takes.
  absl::Duration slow_link = absl::ZeroDuration();
};

struct Outcome {
  absl::Status status;              // of the driver
  std::vector<std::uint64_t> weights;  // of the stages
  std::vector<std::string> violations;
  std::vector<double> losses;
  std::int64_t steps = 0;
  std::int64_t skipped = 0;
  std::int64_t evaluations = 0;
  std::vector<int> most_live_graphs;
  std::uint64_t events = 0;
  absl::Duration time = absl::ZeroDuration();
  int link_breaks = 0;  // that really happened
  int spoiled_chunks = 0;
};

class Simulation : public coordinator::RunDriver::Environment {
 public:
  // `plan` as for the driver; neighbours and link key are filled in.
  Simulation(coordinator::RunPlan plan, std::uint64_t seed, Faults faults);
  ~Simulation() override;

  // To the end, or to an event limit that no run that goes on should reach (then a violation).
  Outcome Run();

  // ---- coordinator::RunDriver::Environment
  void SendControl(int stage, const v1::ControlRequest& request) override;
  void UploadWeights(int stage, const v1::Fence& fence) override;
  void OpenFeed(const v1::Fence& fence) override;
  void FeedStep(std::int64_t step, const coordinator::StepShape& shape) override;
  void FeedEvaluation(std::uint64_t evaluation) override;
  void ReleaseStep(std::int64_t step) override;
  void ReleaseEvaluation(std::uint64_t evaluation) override;
  void OnStep(const coordinator::StepReport& report) override;
  void OnEvaluation(const coordinator::EvaluationReport& report) override;
  void OnProgress(int stage, const v1::Progress& progress) override;

 private:
  class Stage;
  class FeedEnd;

  // One thing that could happen now.
  struct Choice {
    enum class Kind { kToStage, kToCoordinator, kWork, kLink, kDial } kind;
    int index = 0;
    int from = 0;
  };

  std::vector<Choice> Choices();
  void Happen(const Choice& choice);
  void MaybeFault();
  void PassTime(absl::Duration by);
  // While a message crawls over a link; control messages are fast.
  void PassSlowly(absl::Duration by);
  void CheckInvariants(const std::string& after);
  void NoteComputed(int stage, const v1::Computed& computed);
  std::uint64_t Random(std::uint64_t below) { return below == 0 ? 0 : random_() % below; }
  bool Chance(double p) { return static_cast<double>(random_() >> 11) * 0x1p-53 < p; }
  void SendTensors(const v1::TensorHeader& work, const std::vector<std::int64_t>& sizes);

  coordinator::RunPlan plan_;
  Faults faults_;
  std::mt19937_64 random_;
  FakeClock clock_;
  std::unique_ptr<coordinator::RunDriver> driver_;
  std::vector<std::unique_ptr<SimLink>> links_;  // P + 1; outlive their ends
  std::vector<std::unique_ptr<Stage>> stages_;
  std::unique_ptr<FeedEnd> inputs_;
  std::unique_ptr<FeedEnd> targets_;
  // Per stage, in order.
  std::vector<std::deque<v1::ControlRequest>> to_stage_;
  std::vector<std::deque<v1::ControlEvent>> to_coordinator_;
  // attempt -> base state ids that computed it
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::set<std::uint64_t>> bases_;
  std::map<std::uint64_t, std::set<int>> computed_by_;  // step -> stages that said Computed
  Outcome outcome_;
};

}  // namespace resbm::simulation

#endif  // RESBM_TESTS_INTEGRATION_SIMULATION_SIMULATION_H_
