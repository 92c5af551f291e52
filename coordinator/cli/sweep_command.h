// `resbm sweep`: the values of one field against each other, on part of the data.
#ifndef RESBM_COORDINATOR_CLI_SWEEP_COMMAND_H_
#define RESBM_COORDINATOR_CLI_SWEEP_COMMAND_H_

#include <string>

#include "coordinator/cli/options.h"
#include "coordinator/compare/spread.h"

namespace resbm::coordinator {

// Within the sweep's folder, beside the run directories.
inline constexpr char kSweepFile[] = "sweep.json";

struct SweepOptions {
  JobOptions job;
  FleetOptions fleet;  // neither --stages nor --local-stages: one local stage
  OutputOptions output;
  std::string field = "boundary.ratio";
  std::string values;
  std::string baseline;  // see SweepSpec
  int seeds = kSeedsForVerdict;
  double fraction = 0.1;
  double budget = 0.5;
  double stop_margin = 0.5;  // see EarlyStop
  std::string runs = "runs";
};

void AddTo(CLI::App* app, SweepOptions* options);

// The exit code. Everything that went wrong has been said on stderr.
int Sweep(const SweepOptions& options);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_SWEEP_COMMAND_H_
