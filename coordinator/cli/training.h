// One training run, from a valid job to a run directory: what `train`, `verify` and `sweep` have in common.
#ifndef RESBM_COORDINATOR_CLI_TRAINING_H_
#define RESBM_COORDINATOR_CLI_TRAINING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cli/exit_code.h"
#include "coordinator/cli/options.h"
#include "coordinator/cli/run_command.h"
#include "coordinator/report/summary.h"
#include "coordinator/run/run_driver.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

struct TrainingRequest {
  std::string command;  // for messages: "train"
  v1::Job job;          // valid for these stages
  FleetOptions fleet;
  OutputOptions output;
  RunDirectoryOptions where;
  std::string metrics_listen;  // HOST:PORT of /metrics; empty: none
  // Called once before the first step, with the number of steps.
  std::function<void(std::int64_t total_steps)> on_start;
  // Called after each committed step. False ends the run as an interrupt does: no evaluation, weights saved.
  std::function<bool(const StepReport&)> on_step;
};

struct TrainingResult {
  // Everything that went wrong has been said on stderr.
  ExitCode code = kExitUsage;
  // The run ended well (perhaps early) after one step or more: weights, metrics and summary are in the directory.
  bool saved = false;
  // on_step ended it.
  bool stopped = false;
  // Empty where nothing is left of the run.
  std::string directory;
  Summary summary;
  // Names of the trainable parameters in global order.
  std::vector<std::string> parameters;
};

// `signals` is made before any thread, and may serve several runs one after the other; once interrupted, no
// further run begins (kExitInterrupted).
TrainingResult RunTraining(const TrainingRequest& request, SignalledRun* signals);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_TRAINING_H_
