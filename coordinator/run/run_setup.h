// From a valid job to all that a run is: model, partition, windows, programs, batches. No process is
// touched yet.
#ifndef RESBM_COORDINATOR_RUN_RUN_SETUP_H_
#define RESBM_COORDINATOR_RUN_RUN_SETUP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/data/batch_source.h"
#include "coordinator/plan/model_plan.h"
#include "coordinator/plan/partition.h"
#include "coordinator/run/run_driver.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

enum class RunKind { kTrain, kEvaluate };

struct RunSetup {
  v1::Job job;
  ModelPlan model;
  PartitionPlan partition;
  std::vector<int> windows;  // of the stages
  std::shared_ptr<const data::Dataset> train;  // null for kEvaluate
  std::shared_ptr<const data::Dataset> test;   // null where nothing is evaluated
  std::shared_ptr<const data::BatchSource> batches;
  // Complete but for coordinator_epoch, neighbours and restore.
  RunPlan plan;

  // Of bytes: a language model.
  bool is_text() const { return job.data().has_text(); }
  int stages() const { return static_cast<int>(partition.stages.size()); }
};

// Loads the data and plans. `stages`: what --stages or --local-stages asks for. `job_id` names the run to
// the stages. Errors are those of PlanPartition, ResolveWindows and LoadDataset, and INVALID_ARGUMENT where
// data and model do not fit together or a program would hang.
absl::StatusOr<RunSetup> SetUpRun(const v1::Job& job, RunKind kind, std::optional<int> stages, std::string job_id);

// Trainable values of a stage: its layers, whole boundaries between them, and its halves of those at its ends.
std::uint64_t StageParameters(const RunSetup& setup, int stage);

// Fills in who is whose neighbour: stage k dials stage k+1. addresses[k] is where its neighbours reach stage k.
void ConnectStages(absl::Span<const std::string> addresses, const std::string& link_key,
                   std::vector<v1::StageSpec>* stages);

// 16 bytes from the system's generator.
std::string RandomKey();

// "<name>-<16 hex digits>"
std::string NewJobId(const std::string& name);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_RUN_SETUP_H_
