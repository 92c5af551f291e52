#include "coordinator/plan/simulate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

using Kind = Action::Kind;

std::vector<int> OrderOf(const Program& program, Kind kind) {
  std::vector<int> order;
  for (const Action& action : program) {
    if (action.kind == kind) order.push_back(action.micro_batch);
  }
  return order;
}

// Each stage's program by itself, and that neighbours agree on the order of the tensors between them.
absl::Status CheckShape(absl::Span<const Program> programs) {
  if (programs.empty()) return absl::InvalidArgumentError("no programs");
  const std::vector<int> forwards = OrderOf(programs[0], Kind::kForward);
  const bool training = programs[0].size() != forwards.size();
  const int count = static_cast<int>(forwards.size());
  for (int s = 0; s < static_cast<int>(programs.size()); ++s) {
    auto error = [s](auto&&... parts) {
      return absl::InvalidArgumentError(absl::StrCat("program of stage ", s, ": ", parts...));
    };
    std::vector<bool> forwarded(count, false);
    int next_backward = 0;
    for (const Action& action : programs[s]) {
      const int m = action.micro_batch;
      if (m < 0 || m >= count) return error(ToString(action), " with ", count, " micro-batches");
      if (action.kind == Kind::kForward) {
        if (forwarded[m]) return error(ToString(action), " twice");
        forwarded[m] = true;
      } else {
        if (m != next_backward) return error(ToString(action), " where B", next_backward, " must come");
        if (!forwarded[m]) return error(ToString(action), " before F", m);
        ++next_backward;
      }
    }
    if (OrderOf(programs[s], Kind::kForward) != forwards) {
      return error("forwards in another order than on stage 0, whose tensors come in their order");
    }
    if (next_backward != (training ? count : 0)) {
      return error(next_backward, " backwards for ", count, training ? " micro-batches" : " forwards of an evaluation");
    }
  }
  return absl::OkStatus();
}

class Simulation {
 public:
  Simulation(absl::Span<const Program> programs, const SimulationTiming& timing)
      : programs_(programs), timing_(timing), next_(programs.size(), 0), result_{0, 0, {}} {
    result_.stages.resize(programs.size());
    const std::size_t count = OrderOf(programs[0], Kind::kForward).size();
    arrival_.assign(2, std::vector<std::vector<double>>(programs.size(), std::vector<double>(count, kNotYet)));
    in_flight_.assign(programs.size(), 0);
  }

  absl::StatusOr<SimulationResult> Run() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (int s = 0; s < stages(); ++s) {
        while (next_[s] < programs_[s].size() && RunNext(s)) progress = true;
      }
    }
    std::vector<std::string> waiting;
    double busy = 0;
    for (int s = 0; s < stages(); ++s) {
      if (next_[s] < programs_[s].size()) {
        const Action& action = programs_[s][next_[s]];
        waiting.push_back(absl::StrCat("stage ", s, " waits at ", ToString(action), " for stage ",
                                       action.kind == Kind::kForward ? s - 1 : s + 1));
      }
      busy += result_.stages[s].busy_seconds;
      result_.makespan_seconds = std::max(result_.makespan_seconds, result_.stages[s].end_seconds);
    }
    if (!waiting.empty()) {
      return absl::FailedPreconditionError(absl::StrCat("the programs never end: ", absl::StrJoin(waiting, ", "),
                                                        "; windows must not grow downstream (schedule.windows)"));
    }
    if (result_.makespan_seconds > 0) result_.bubble_share = 1 - busy / (stages() * result_.makespan_seconds);
    return std::move(result_);
  }

 private:
  static constexpr double kNotYet = std::numeric_limits<double>::infinity();

  int stages() const { return static_cast<int>(programs_.size()); }

  // When what `action` needs is at stage s.
  double& Arrival(int s, const Action& action) {
    return arrival_[action.kind == Kind::kForward ? 0 : 1][s][action.micro_batch];
  }

  // False: its tensor cannot be there yet.
  bool RunNext(int s) {
    const Action& action = programs_[s][next_[s]];
    const bool forward = action.kind == Kind::kForward;
    StageSimulation& stage = result_.stages[s];
    const bool outer = forward ? s == 0 : s == stages() - 1;
    const double ready = outer ? 0 : Arrival(s, action);
    if (ready == kNotYet) return false;
    const double seconds = timing_.compute_seconds(s, action);
    stage.end_seconds = std::max(stage.end_seconds, ready) + seconds;
    stage.busy_seconds += seconds;
    in_flight_[s] += forward ? 1 : -1;
    stage.most_in_flight = std::max(stage.most_in_flight, in_flight_[s]);
    const int to = forward ? s + 1 : s - 1;
    if (to >= 0 && to < stages()) Arrival(to, action) = stage.end_seconds + timing_.hop_seconds(s, action);
    ++next_[s];
    return true;
  }

  const absl::Span<const Program> programs_;
  const SimulationTiming& timing_;
  std::vector<std::size_t> next_;
  std::vector<std::vector<std::vector<double>>> arrival_;  // [forward, backward][stage][micro_batch]
  std::vector<int> in_flight_;
  SimulationResult result_;
};

}  // namespace

SimulationTiming FixedTiming(std::vector<double> forward_seconds, std::vector<double> backward_seconds,
                             double hop_seconds) {
  return {[forward = std::move(forward_seconds), backward = std::move(backward_seconds)](int s, const Action& action) {
            return action.kind == Kind::kForward ? forward.at(s) : backward.at(s);
          },
          [hop_seconds](int, const Action&) { return hop_seconds; }};
}

absl::StatusOr<SimulationResult> Simulate(absl::Span<const Program> programs, const SimulationTiming& timing) {
  RESBM_RETURN_IF_ERROR(CheckShape(programs));
  return Simulation(programs, timing).Run();
}

absl::Status CheckPrograms(absl::Span<const Program> programs) {
  const SimulationTiming unit{[](int, const Action&) { return 1.0; }, [](int, const Action&) { return 0.0; }};
  return Simulate(programs, unit).status();
}

int SuggestedWindow(int stage, int stages, int micro_batches, double forward_seconds, double backward_seconds,
                    double hop_seconds) {
  const int below = stages - 1 - stage;
  const double compute = forward_seconds + backward_seconds;
  // Nothing to compute: no window hides the hop, the largest is the best.
  if (!(compute > 0)) return hop_seconds > 0 && below > 0 ? micro_batches : std::min(stages - stage, micro_batches);
  // Less a little, so that a quotient that is whole but for rounding does not cost a micro-batch.
  const double window = std::ceil((stages - stage) + 2 * hop_seconds * below / compute - 1e-9) + below;
  return window < micro_batches ? std::max(static_cast<int>(window), 1) : micro_batches;
}

}  // namespace resbm::coordinator
