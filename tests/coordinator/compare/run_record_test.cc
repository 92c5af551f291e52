#include "coordinator/compare/run_record.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/compare/example_runs.h"
#include "tests/support/temp_files.h"

namespace resbm::coordinator {
namespace {

using ::testing::HasSubstr;
using testing::TempDirectory;

TEST(RunRecord, HasEveryNumberOfTheSummaryByItsPath) {
  const RunRecord run = ExampleRecord({});
  EXPECT_EQ(run.figure("top1"), 0.9);
  EXPECT_EQ(run.figure("stages.1.peak_memory_bytes.total"), 20'000'000);
  EXPECT_EQ(run.figure("boundaries.group0.0.gradients.payload_bytes"), 1000);
  EXPECT_EQ(run.figure("boundaries.group0.0.activations.uncompressed_bytes.fp32"), 8000);
  EXPECT_FALSE(run.figure("communication_share_total").has_value());  // null
}

TEST(RunRecord, AddsWhatFollowsFromItAndFromTheJob) {
  const RunRecord run = ExampleRecord({});
  EXPECT_EQ(run.stages, 2);
  EXPECT_EQ(run.figure(kBytesPerStep), 2020);
  EXPECT_EQ(run.figure(kFp16BytesPerStep), 8000);
  EXPECT_EQ(run.figure(kParameters), 1200);
  EXPECT_EQ(run.figure(kPeakMemory), 50'000'000);
  EXPECT_EQ(run.figure(kUtilization), 0.6);
  // 8 channels of 14 x 14, r = 4, fp16, both directions.
  EXPECT_EQ(run.figure(kPlannedBytes), 2 * 2 * 2 * 14 * 14);
  EXPECT_EQ(run.figure(kPlannedFp16Bytes), 2 * 2 * 8 * 14 * 14);
  EXPECT_LT(*run.figure(kLossSlope), 0);
  EXPECT_EQ(run.figure(kLossSpikes), 0);
}

TEST(RunRecord, RowsOfSkippedStepsAreNoPartOfTheCurve) {
  const auto lines = ParseMetrics(
      "{\"step\":1,\"loss\":2.5,\"skipped\":false,\"grad_norm\":3}\n"
      "{\"step\":2,\"loss\":null,\"skipped\":true}\n"
      "{\"step\":3,\"lo");
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->size(), 2u);  // the last was being written
  EXPECT_EQ((*lines)[0].grad_norm, 3);
  EXPECT_TRUE(std::isnan((*lines)[1].loss));
  EXPECT_TRUE((*lines)[1].skipped);
}

TEST(RunRecord, RowsHaveWhatTheFileSaysOfAStep) {
  const auto lines = ParseMetrics(
      R"({"step":1,"loss":2,"step_seconds":0.5,"learning_rate":0.001,"skipped":true,"non_finite":["stage 1: loss"],)"
      R"("signals":{"group0.1":{"z_rms":1.5,"z_effective_rank":null},"odd":3}})"
      "\n"
      R"({"step":2,"loss":1,"step_seconds":"x","signals":[1],"non_finite":7})"
      "\n");
  ASSERT_TRUE(lines.ok()) << lines.status();
  const MetricsLine& line = (*lines)[0];
  EXPECT_EQ(line.step_seconds, 0.5);
  EXPECT_EQ(line.learning_rate, 0.001);
  EXPECT_EQ(line.non_finite, std::vector<std::string>{"stage 1: loss"});
  using Signals = std::map<std::string, std::map<std::string, double>>;
  EXPECT_EQ(line.signals, (Signals{{"group0.1", {{"z_rms", 1.5}}}}));
  EXPECT_FALSE((*lines)[1].step_seconds.has_value());
  EXPECT_TRUE((*lines)[1].signals.empty());
  EXPECT_TRUE((*lines)[1].non_finite.empty());
}

TEST(RunRecord, DamagedMetricsNameTheirLine) {
  for (const auto& [text, what] : std::vector<std::pair<std::string, std::string>>{
           {"{\"step\":1,\"loss\":2}\nnonsense\n", "line 2: not a JSON object"},
           {"[]\n", "line 1: not a JSON object"},
           {"{\"loss\":2}\n", "line 1: step is not"},
           {"{\"step\":1,\"loss\":\"x\"}\n", "line 1: loss is not"},
           {"{\"step\":2,\"loss\":1}\n{\"step\":2,\"loss\":1}\n", "line 2: steps do not ascend"}}) {
    const auto lines = ParseMetrics(text);
    EXPECT_EQ(lines.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(lines.status().message(), HasSubstr(what));
  }
}

TEST(RunRecord, IsReadFromItsFolder) {
  const TempDirectory folder;
  folder.Write("job.textproto", ExampleJob({}));
  folder.Write("summary.json", ToJson(ExampleSummaryOf({})));
  const auto without = ReadRun(folder.path());
  EXPECT_EQ(without.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(without.status().message(), HasSubstr("metrics.jsonl"));
  folder.Write("metrics.jsonl", "");
  const auto run = ReadRun(folder.path() + "/");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->path, folder.path());
  EXPECT_EQ(run->job_text, ExampleJob({}));
  EXPECT_EQ(run->summary, ExampleSummaryOf({}));
  EXPECT_TRUE(run->curve.empty());
  folder.Write("summary.json", "{\"top1\": \"high\"}");
  EXPECT_THAT(ReadRun(folder.path()).status().message(), HasSubstr("summary.json: summary: top1 is not a number"));
  EXPECT_EQ(ReadRun(folder / "nowhere").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace resbm::coordinator
