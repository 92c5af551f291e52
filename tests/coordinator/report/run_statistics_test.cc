#include "coordinator/report/run_statistics.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

// Two stages, cut after "group0.1": 32 x 14 x 14, r = 16, 8 samples in 4 micro-batches.
RunStatistics::Options TwoStages() {
  RunStatistics::Options options;
  options.name = "run";
  options.stages = {{"cpu", 100}, {"cpu", 200}};
  v1::BoundarySpec& cut = options.cuts.emplace_back();
  cut.set_cut_point("group0.1");
  cut.set_in_channels(32);
  cut.set_crossing_channels(2);
  v1::WireTensor* z = cut.add_wire();
  z->set_activation_codec(v1::CODEC_FP16);
  z->set_gradient_codec(v1::CODEC_FP32);
  for (int dim : {32, 14, 14}) cut.add_input_shape(dim);
  options.windows = {2, 1};
  options.steps_per_epoch = 2;
  return options;
}

// Each stage computes 1 s forward and 2 s backward a step.
std::vector<v1::Computed> Computed(double up_wait, double down_wait, int samples) {
  std::vector<v1::Computed> stages(2);
  for (v1::Computed& stage : stages) {
    stage.mutable_times()->set_forward_seconds(1);
    stage.mutable_times()->set_backward_seconds(2);
    stage.mutable_memory()->set_peak_bytes(1000 * samples);
    stage.mutable_memory()->set_weights_bytes(10);
    stage.mutable_memory()->set_activations_bytes(1000 * samples - 10);
  }
  stages[0].mutable_times()->set_waiting_down_seconds(down_wait);
  stages[1].mutable_times()->set_waiting_up_seconds(up_wait);
  stages[0].mutable_bytes()->set_down_payload(samples * 784);
  stages[0].mutable_bytes()->set_down_metadata(400);
  stages[1].mutable_bytes()->set_up_payload(samples * 1568);
  stages[1].mutable_bytes()->set_up_metadata(480);
  return stages;
}

StepStatistics Step(const std::vector<v1::Computed>& computed, std::int64_t epoch, double seconds, double loss) {
  StepStatistics step;
  step.epoch = epoch;
  step.samples = 8;
  step.micro_batches = 4;
  step.seconds = seconds;
  step.loss = loss;
  step.computed = computed;
  return step;
}

EvaluationSummary After(double loss, double top1) { return {1, loss, top1, 100, 0.5}; }

TEST(RunStatistics, OfTextThereIsPerplexityBitsAByteAndTokens) {
  RunStatistics::Options options = TwoStages();
  options.is_text = true;
  RunStatistics statistics(options);
  const auto computed = Computed(0, 0, 8);
  for (const double weight : {1000.0, 900.0}) {  // the second with masked tokens
    StepStatistics step = Step(computed, 0, 2, 2.0);
    step.weight = weight;
    statistics.AddStep(step);
  }
  EXPECT_FALSE(statistics.Summarize().perplexity.has_value());
  statistics.AddEvaluation(After(1.5, 0.5));
  const Summary summary = statistics.Summarize();
  EXPECT_DOUBLE_EQ(*summary.perplexity, std::exp(1.5));
  EXPECT_DOUBLE_EQ(*summary.bits_per_byte, 1.5 / std::log(2.0));
  EXPECT_DOUBLE_EQ(*summary.tokens_per_second, 1900.0 / 4);
  EXPECT_DOUBLE_EQ(*summary.samples_per_second, 16.0 / 4);
  RunStatistics images(TwoStages());
  images.AddStep(Step(computed, 0, 2, 2.0));
  images.AddEvaluation(After(1.5, 0.5));
  EXPECT_FALSE(images.Summarize().perplexity || images.Summarize().bits_per_byte ||
               images.Summarize().tokens_per_second);
}

TEST(RunStatistics, SeveralTensorsAreNamedTogetherAndTheirRatioIsThatOfTheValues) {
  RunStatistics::Options options = TwoStages();
  v1::BoundarySpec& cut = options.cuts[0];
  cut.clear_crossing_channels();
  cut.set_kept(392);  // of 6272
  v1::WireTensor* indices = cut.add_wire();
  indices->set_activation_codec(v1::CODEC_RAW);
  indices->set_dtype(v1::INT16);
  RunStatistics statistics(options);
  const auto computed = Computed(0, 0, 8);
  statistics.AddStep(Step(computed, 0, 4, 2.0));
  const Summary summary = statistics.Summarize();
  ASSERT_EQ(summary.boundaries.size(), 2u);
  EXPECT_EQ(summary.boundaries[0].ratio, 16);
  EXPECT_EQ(summary.boundaries[0].codec, "fp16+int16");
  EXPECT_EQ(summary.boundaries[1].codec, "fp32");
}

TEST(RunStatistics, MeansAreOverTheSteps) {
  RunStatistics statistics(TwoStages());
  const auto computed = Computed(0, 0, 8);
  statistics.AddStep(Step(computed, 0, 4, 2.0));
  statistics.AddStep(Step(computed, 0, 6, 1.5));
  statistics.AddStep(Step(computed, 1, 5, 1.0));
  StepStatistics skipped = Step(computed, 1, 9, 99);
  skipped.skipped = true;
  statistics.AddStep(skipped);
  statistics.AddStep(Step(computed, 2, 1, 0.5));  // an epoch that was not completed
  statistics.AddEvaluation(After(0.9, 0.25));
  statistics.AddEvaluation(After(0.8, 0.75));
  const Summary summary = statistics.Summarize();
  EXPECT_EQ(summary.name, "run");
  EXPECT_EQ(summary.steps, 5);
  EXPECT_EQ(summary.skipped_steps, 1);
  EXPECT_EQ(summary.samples, 40);
  EXPECT_EQ(summary.training_seconds, 25);
  EXPECT_EQ(summary.final_loss, 0.5);
  EXPECT_EQ(summary.validation_loss, 0.8);
  EXPECT_EQ(summary.top1, 0.75);
  EXPECT_EQ(summary.evaluations, (std::vector<EvaluationSummary>{After(0.9, 0.25), After(0.8, 0.75)}));
  EXPECT_EQ(summary.samples_per_second, 40.0 / 25);
  EXPECT_EQ(summary.step_seconds_median, 5);
  EXPECT_EQ(summary.epoch_seconds, (10 + 14) / 2.0);
  EXPECT_FALSE(summary.planned_step_seconds.has_value());
  EXPECT_FALSE(summary.communication_share_total.has_value());
  ASSERT_EQ(summary.stages.size(), 2u);
  EXPECT_EQ(summary.stages[1].parameters, 200);
  EXPECT_EQ(summary.stages[1].forward_seconds, 1);
  EXPECT_EQ(summary.stages[1].backward_seconds, 2);
  EXPECT_DOUBLE_EQ(summary.stages[1].utilization, 15.0 / 25);
}

TEST(RunStatistics, WhatRanTheRunIsHandedOn) {
  RunStatistics::Options options = TwoStages();
  options.started = "2026-01-02T03:04:05+00:00";
  options.version = "0.1.0";
  options.stages[1] = {"cuda:0", 200, {"0.1.0", "H200", "2.13.0", "AVX512"}};
  const Summary summary = RunStatistics(options).Summarize();
  EXPECT_EQ(summary.started, "2026-01-02T03:04:05+00:00");
  EXPECT_EQ(summary.version, "0.1.0");
  ASSERT_EQ(summary.stages.size(), 2u);
  EXPECT_EQ(summary.stages[0].server, ServerSummary());
  EXPECT_EQ(summary.stages[1].server, options.stages[1].server);
}

TEST(RunStatistics, TheFinalLossIsOfTheLastStepThatWasNotSkipped) {
  RunStatistics statistics(TwoStages());
  const auto computed = Computed(0, 0, 8);
  statistics.AddStep(Step(computed, 0, 4, 2.0));
  StepStatistics skipped = Step(computed, 0, 4, 99);
  skipped.skipped = true;
  statistics.AddStep(skipped);
  EXPECT_EQ(statistics.Summarize().final_loss, 2.0);
}

TEST(RunStatistics, BytesStandBesideTheUncompressedOnes) {
  RunStatistics statistics(TwoStages());
  const auto eight = Computed(0, 0, 8);
  statistics.AddStep(Step(eight, 0, 4, 1));
  const auto four = Computed(0, 0, 4);
  StepStatistics small = Step(four, 0, 4, 1);
  small.samples = 4;
  statistics.AddStep(small);
  const Summary summary = statistics.Summarize();
  ASSERT_EQ(summary.boundaries.size(), 2u);
  const BoundarySummary& down = summary.boundaries[0];
  EXPECT_EQ(down.cut_point, "group0.1");
  EXPECT_EQ(down.direction, "activations");
  EXPECT_EQ(down.codec, "fp16");
  EXPECT_EQ(down.ratio, 16);
  EXPECT_EQ(down.payload_bytes, 6 * 784);
  EXPECT_EQ(down.metadata_bytes, 400);
  EXPECT_EQ(down.uncompressed_bytes.fp16, 6 * 32 * 14 * 14 * 2);
  EXPECT_EQ(down.uncompressed_bytes.fp32, 6 * 32 * 14 * 14 * 4);
  EXPECT_EQ(down.uncompressed_bytes.fp16 / down.payload_bytes, 16);
  const BoundarySummary& up = summary.boundaries[1];
  EXPECT_EQ(up.direction, "gradients");
  EXPECT_EQ(up.codec, "fp32");
  EXPECT_EQ(up.payload_bytes, 6 * 1568);
  EXPECT_EQ(up.uncompressed_bytes.fp32 / up.payload_bytes, 16);
}

TEST(RunStatistics, AnUncompressedCutHasTheRatioOne) {
  RunStatistics::Options options = TwoStages();
  options.cuts[0].set_crossing_channels(0);
  RunStatistics statistics(options);
  const auto computed = Computed(0, 0, 8);
  statistics.AddStep(Step(computed, 0, 4, 1));
  EXPECT_EQ(statistics.Summarize().boundaries[0].ratio, 1);
}

TEST(RunStatistics, MemoryIsThatOfTheLargestStep) {
  RunStatistics statistics(TwoStages());
  for (int samples : {4, 8, 2}) {
    const auto computed = Computed(0, 0, samples);
    statistics.AddStep(Step(computed, 0, 4, 1));
  }
  const PeakMemory memory = statistics.Summarize().stages[0].peak_memory;
  EXPECT_EQ(memory.total, 8000);
  EXPECT_EQ(memory.weights, 10);
  EXPECT_EQ(memory.activations, 7990);
}

// tF = 0.25, tB = 0.5, P = 2, M = 4: the schedule takes 5 x 0.75 s, of which each stage computes 3. Stage 1
// waits 0.25 for its first input, stage 0 then 0.5 for the gradients it needs.
TEST(RunStatistics, WaitingIsTheSchedulesFirstAndTheLinksThen) {
  RunStatistics ideal(TwoStages());
  const auto none = Computed(0.25, 0.5, 8);
  ideal.AddStep(Step(none, 0, 3.75, 1));
  EXPECT_NEAR(*ideal.Summarize().bubble_share, 0.2, 1e-12);
  EXPECT_NEAR(*ideal.Summarize().communication_share_exposed, 0, 1e-12);

  RunStatistics slow(TwoStages());
  const auto waits = Computed(0.25 + 1, 0.75 + 2, 8);
  slow.AddStep(Step(waits, 0, 6.25, 1));
  EXPECT_NEAR(*slow.Summarize().bubble_share, 1.5 / 12.5, 1e-12);
  EXPECT_NEAR(*slow.Summarize().communication_share_exposed, 3 / 12.5, 1e-12);
}

TEST(RunStatistics, ARunWithoutStepsHasNoFigures) {
  RunStatistics statistics(TwoStages());
  statistics.AddEvaluation(After(0.5, 0.8));
  const Summary summary = statistics.Summarize();
  EXPECT_EQ(summary.steps, 0);
  EXPECT_FALSE(summary.final_loss.has_value());
  EXPECT_FALSE(summary.samples_per_second.has_value());
  EXPECT_FALSE(summary.bubble_share.has_value());
  EXPECT_TRUE(summary.boundaries.empty());
  EXPECT_EQ(summary.top1, 0.8);
}

}  // namespace
}  // namespace resbm::coordinator
