// Runs a set of programs on paper: do they end, and how long do they take? Every set is checked before it
// is sent to the stages; the planner compares windows with it.
#ifndef RESBM_COORDINATOR_PLAN_SIMULATE_H_
#define RESBM_COORDINATOR_PLAN_SIMULATE_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/plan/schedule.h"

namespace resbm::coordinator {

// How long things take. An action starts when its stage is free and its tensor is there; sending costs the
// stage nothing. Seconds, not negative.
struct SimulationTiming {
  std::function<double(int stage, const Action&)> compute_seconds;
  // From stage `from` to its neighbour: down after a forward, up after a backward.
  std::function<double(int from, const Action&)> hop_seconds;
};

// forward, backward: one per stage. Every hop takes `hop_seconds` (latency, not transfer time: that
// bounds the rate).
SimulationTiming FixedTiming(std::vector<double> forward_seconds, std::vector<double> backward_seconds,
                             double hop_seconds);

struct StageSimulation {
  double busy_seconds = 0;
  // Most micro-batches forwarded and not yet taken backward (training).
  int most_in_flight = 0;
  double end_seconds = 0;
};

struct SimulationResult {
  double makespan_seconds = 0;
  // Share of stages x makespan in which a stage did not compute.
  double bubble_share = 0;
  std::vector<StageSimulation> stages;
};

// The programs must all train (each micro-batch forward and backward once on each stage) or all evaluate
// (forwards only). INVALID_ARGUMENT: a micro-batch twice, missing, or backward before forward; backward
// not ascending; neighbours that do not take micro-batches in the same order (tensors of a link come in
// the order in which they were sent). FAILED_PRECONDITION: they hang; the message names every stage that
// waits, for which action, and the windows to look at.
absl::StatusOr<SimulationResult> Simulate(absl::Span<const Program> programs, const SimulationTiming& timing);

// Whether they end, at any timing: a stage waits only for tensors, each of which one other action makes,
// so no timing changes which actions can run in the end. Errors as Simulate.
absl::Status CheckPrograms(absl::Span<const Program> programs);

// The window that hides hops of `hop_seconds` at stage s (from 0) of P, at most M:
//   ceil((P-s) + 2c(P-1-s)/(tF+tB)) + (P-1-s)
// protocol.md, section 6: without the last term 0.745 of the ideal was reached, with it 0.981.
int SuggestedWindow(int stage, int stages, int micro_batches, double forward_seconds, double backward_seconds,
                    double hop_seconds);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_PLAN_SIMULATE_H_
