// Gathers what the stages report of each step, and makes the run's summary of it.
#ifndef RESBM_COORDINATOR_REPORT_RUN_STATISTICS_H_
#define RESBM_COORDINATOR_REPORT_RUN_STATISTICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/report/summary.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// A committed step.
struct StepStatistics {
  std::int64_t epoch = 0;  // of the data, from 0
  std::int64_t samples = 0;
  double weight = 0;  // samples, or of text the bytes that are predicted
  int micro_batches = 0;
  double seconds = 0;  // wall time
  double loss = 0;
  bool skipped = false;
  // By stage.
  absl::Span<const v1::Computed> computed;
};

// For one thread.
class RunStatistics {
 public:
  struct Stage {
    std::string device;
    std::int64_t parameters = 0;
    ServerSummary server = {};
  };
  struct Options {
    std::string name;
    std::string started;  // as Summary has it
    std::string version;
    std::vector<Stage> stages;
    // The boundary after each stage but the last.
    std::vector<v1::BoundarySpec> cuts;
    // Of the training programs; what the schedule's own idle time follows from.
    std::vector<int> windows;
    std::int64_t steps_per_epoch = 0;
    // Losses are of a byte of text.
    bool is_text = false;
  };

  explicit RunStatistics(Options options);

  void AddStep(const StepStatistics& step);
  // The last one is the run's result.
  void AddEvaluation(const EvaluationSummary& evaluation);

  // bubble_share: idle time of the schedule, simulated for each step with the forward and backward times
  // that its stages measured and with links that take no time. communication_share_exposed: what the stages
  // waited for tensors beyond that. Both as shares of the stages' wall time.
  // communication_share_total and planned_step_seconds are left absent.
  Summary Summarize() const;

 private:
  struct StageSums {
    v1::WorkTimes times;
    v1::MemoryUse peak;  // the largest of the steps
    double down_payload = 0, down_metadata = 0, up_payload = 0, up_metadata = 0;
  };

  void AddIdleTime(const StepStatistics& step);
  std::vector<BoundarySummary> Boundaries() const;

  const Options options_;
  std::int64_t samples_ = 0;
  double weight_ = 0;
  std::int64_t skipped_ = 0;
  std::vector<double> step_seconds_;
  double training_seconds_ = 0;
  std::optional<double> final_loss_;
  std::vector<EvaluationSummary> evaluations_;
  std::vector<StageSums> stages_;
  double bubble_seconds_ = 0;   // of all stages together
  double exposed_seconds_ = 0;
  // The epoch in work, and the complete ones.
  std::int64_t epoch_ = -1;
  std::int64_t epoch_steps_ = 0;
  double epoch_seconds_ = 0;
  std::int64_t complete_epochs_ = 0;
  double complete_epoch_seconds_ = 0;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_RUN_STATISTICS_H_
