// Small runs with literal figures, for tests of comparisons.
#ifndef RESBM_TESTS_COORDINATOR_COMPARE_EXAMPLE_RUNS_H_
#define RESBM_TESTS_COORDINATOR_COMPARE_EXAMPLE_RUNS_H_

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "coordinator/compare/run_record.h"
#include "coordinator/report/summary.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {

struct ExampleRun {
  std::string path = "runs/a";
  int seed = 1;
  // Goes into the job; "" = none.
  std::string boundary = "ratio: 4";
  std::string more;
  double top1 = 0.9;
  double validation_loss = 0.3;
  double samples_per_second = 100;
  double payload_bytes = 1000;  // per direction
  std::int64_t peak_memory = 50'000'000;
  bool is_text = false;  // figures of a language model besides
  std::vector<double> losses = {2, 1.5, 1.2, 1, 0.9, 0.85, 0.8, 0.78, 0.76, 0.75};
};

inline std::string ExampleJob(const ExampleRun& example) {
  return absl::StrFormat(R"(
name: "small" seed: %d
model { resnet { stem { channels: 8 stride: 2 } group { blocks: 2 channels: 8 } } }
boundary { %s }
cut_point { after: "group0.0" }
data { mnist { directory: "/data" } }
optimizer { sgd {} }
%s)",
                         example.seed, example.boundary, example.more);
}

inline Summary ExampleSummaryOf(const ExampleRun& example) {
  Summary summary;
  summary.name = "small";
  summary.steps = static_cast<std::int64_t>(example.losses.size());
  summary.samples = 40 * summary.steps;
  summary.training_seconds = 8;
  summary.final_loss = example.losses.back();
  summary.top1 = example.top1;
  summary.validation_loss = example.validation_loss;
  summary.samples_per_second = example.samples_per_second;
  if (example.is_text) {
    summary.perplexity = std::exp(example.validation_loss);
    summary.bits_per_byte = example.validation_loss / std::numbers::ln2;
    summary.tokens_per_second = 128 * example.samples_per_second;
  }
  summary.step_seconds_median = 40 / example.samples_per_second;
  summary.epoch_seconds = 4;
  summary.boundaries = {
      {"group0.0", "activations", "fp16", 4, example.payload_bytes, 10, {4000, 8000}},
      {"group0.0", "gradients", "fp16", 4, example.payload_bytes, 10, {4000, 8000}},
  };
  summary.communication_share_exposed = 0.1;
  summary.bubble_share = 0.2;
  const PeakMemory peak = {example.peak_memory, 10'000'000, 5'000'000, example.peak_memory - 20'000'000, 5'000'000};
  summary.stages = {{0, "cpu", 500, 0.1, 0.2, 0, 0.05, 0.01, 0.7, peak, std::nullopt},
                    {1,
                     "cpu",
                     700,
                     0.1,
                     0.2,
                     0.05,
                     0,
                     0.01,
                     0.5,
                     {20'000'000, 10'000'000, 5'000'000, 4'000'000, 1'000'000},
                     std::nullopt}};
  return summary;
}

inline RunRecord ExampleRecord(const ExampleRun& example) {
  std::string metrics;
  for (std::size_t i = 0; i < example.losses.size(); ++i) {
    metrics +=
        absl::StrFormat("{\"step\":%d,\"loss\":%.6f,\"skipped\":false,\"grad_norm\":1.5}\n", i + 1, example.losses[i]);
  }
  auto run = MakeRunRecord(example.path, ExampleJob(example), ToJson(ExampleSummaryOf(example)), metrics);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? *std::move(run) : RunRecord();
}

// An arm's runs with seeds 1, 2, ...
inline std::vector<RunRecord> ExampleRecords(ExampleRun example, const std::vector<double>& top1) {
  std::vector<RunRecord> runs;
  const std::string path = example.path;
  for (std::size_t i = 0; i < top1.size(); ++i) {
    example.seed = static_cast<int>(i) + 1;
    example.path = absl::StrFormat("%s%d", path, example.seed);
    example.top1 = top1[i];
    runs.push_back(ExampleRecord(example));
  }
  return runs;
}

}  // namespace resbm::coordinator

#endif  // RESBM_TESTS_COORDINATOR_COMPARE_EXAMPLE_RUNS_H_
