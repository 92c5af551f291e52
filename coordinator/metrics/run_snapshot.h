// Everything that the coordinator's /metrics says of a training run at one moment. Plain data.
#ifndef RESBM_COORDINATOR_METRICS_RUN_SNAPSHOT_H_
#define RESBM_COORDINATOR_METRICS_RUN_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/metrics/histogram.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

struct RunSnapshot {
  std::string job_id;
  std::string name;
  std::int64_t total_steps = 0;

  // Of the last step that every stage has committed; what follows is absent before the first.
  std::optional<std::int64_t> step;
  v1::Fence fence;
  std::int64_t epoch = 0;      // of the data, from 0
  std::optional<double> loss;  // of the last step that was applied
  double learning_rate = 0;
  double gradient_norm = 0;  // before clipping
  double waiting_ratio = 0;  // of the stages' time

  std::uint64_t samples = 0;
  std::uint64_t applied_steps = 0;
  std::uint64_t skipped_steps = 0;
  metrics::Histogram step_seconds;

  std::uint64_t evaluations = 0;
  std::optional<double> evaluation_loss;
  std::optional<double> evaluation_top1;  // fraction

  struct Stage {
    v1::WorkTimes times;                    // sums
    double utilization = 0;                 // of the last step
    std::uint64_t peak_memory_bytes = 0;    // of the last step
    std::optional<double> waiting_seconds;  // as it said last
  };
  std::vector<Stage> stages;

  struct Cut {
    std::string boundary;  // its cut point
    std::uint64_t activation_payload_bytes = 0;
    std::uint64_t activation_metadata_bytes = 0;
    std::uint64_t gradient_payload_bytes = 0;
    std::uint64_t gradient_metadata_bytes = 0;
  };
  // The one after each stage but the last.
  std::vector<Cut> cuts;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_METRICS_RUN_SNAPSHOT_H_
