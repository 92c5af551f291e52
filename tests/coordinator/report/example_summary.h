// A summary with every field set, for tests.
#ifndef RESBM_TESTS_COORDINATOR_REPORT_EXAMPLE_SUMMARY_H_
#define RESBM_TESTS_COORDINATOR_REPORT_EXAMPLE_SUMMARY_H_

#include <optional>

#include "coordinator/report/summary.h"

namespace resbm::coordinator {

inline Summary ExampleSummary() {
  Summary summary;
  summary.name = "fmnist-r16";
  summary.started = "2026-01-02T03:04:05+00:00";
  summary.version = "0.1.0";
  summary.steps = 1875;
  summary.skipped_steps = 3;
  summary.samples = 180000;
  summary.training_seconds = 311.8;
  summary.final_loss = 0.28714;
  summary.top1 = 0.87425;
  summary.validation_loss = 0.33121;
  summary.samples_per_second = 577.293;
  summary.step_seconds_median = 0.16611;
  summary.epoch_seconds = 103.93;
  summary.planned_step_seconds = 0.16;
  summary.boundaries = {
      {"group0.1", "activations", "fp16", 16, 75264, 963.5, {1204224, 2408448}},
      {"group0.1", "gradients", "fp16", 16, 75264, 963.5, {1204224, 2408448}},
      {"group1.0", "activations", "fp32", 1, 24084480, 9635, {12042240, 24084480}},
  };
  summary.communication_share_exposed = 0.0312;
  summary.communication_share_total = 0.051;
  summary.bubble_share = 0.0588;
  const PeakMemory first = {104857600, 9000000, 18000000, 60000000, 17857600};
  const PeakMemory second = {5000000, 1000000, 1000000, 2000000, 1000000};
  summary.stages = {
      {0, "cpu", 1234567, 0.0411, 0.0822, 0.0001, 0.0303, 0.001, 0.742, first, std::nullopt},
      {1, "cuda:0", 89, 0.0301, 0.0612, 0.05, 0, 0.002, 0.55, second, 0.91, {"0.1.0", "NVIDIA H200", "2.13.0", "AVX2"}},
  };
  summary.evaluations = {{625, 0.41, 0.851, 10000, 3.5}, {1250, 0.35, std::nullopt, 10000, 3.25}};
  return summary;
}

}  // namespace resbm::coordinator

#endif  // RESBM_TESTS_COORDINATOR_REPORT_EXAMPLE_SUMMARY_H_
