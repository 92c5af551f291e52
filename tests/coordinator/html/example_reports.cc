#include "tests/coordinator/html/example_reports.h"

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <numbers>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/report/metrics_writer.h"
#include "coordinator/report/summary.h"
#include "nlohmann/json.hpp"

namespace resbm::coordinator {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMicroBatches = 4;
constexpr double kStepMicroseconds = 100'000;

double StepMicroseconds(int step) { return step == 1 ? 3 * kStepMicroseconds : step == 3 ? 90'000 : kStepMicroseconds; }

Json Span(int process, int lane, const std::string& name, const char* category, double start, double duration,
          int step) {
  return {{"ph", "X"},       {"pid", process}, {"tid", lane},     {"name", name},
          {"cat", category}, {"ts", start},    {"dur", duration}, {"args", {{"step", step}}}};
}

Json OfMicroBatch(Json span, int micro_batch, int bytes = 0) {
  span["args"]["micro_batch"] = micro_batch;
  if (bytes > 0) span["args"]["bytes"] = bytes;
  return span;
}

// Both ends of a transfer: it is sent for 2 ms, and received in the second half of these.
void AddTransfer(int from, int to, char kind, int micro_batch, double start, int step, Json* events) {
  const bool down = to > from;
  const std::string name = absl::StrCat(std::string(1, kind), micro_batch);
  events->push_back(OfMicroBatch(Span(from, down ? 1 : 3, name, "send", start, 2000, step), micro_batch, 784));
  events->push_back(OfMicroBatch(Span(to, down ? 4 : 2, name, "receive", start + 1000, 1000, step), micro_batch, 784));
}

}  // namespace

std::string ExampleReportJob(const ExampleReport& example) {
  const std::string model = example.is_text
                                ? "transformer { layers: 2 width: 16 heads: 2 context: 16 }"
                                : "resnet { stem { channels: 8 stride: 2 } group { blocks: 2 channels: 8 } }";
  const std::string boundary = example.is_text ? "kind: ADAPTER" : "kind: RESBM";
  return absl::StrFormat(
      "name: \"%s\"\nseed: %d\nmodel { %s }\nboundary { %s ratio: %d }\ncut_point { after: \"%s\" }\n", example.name,
      example.seed, model, boundary, example.ratio, example.is_text ? "block0" : "group0.0");
}

std::string ExampleReportSummary(const ExampleReport& example) {
  Summary summary;
  summary.name = example.name;
  summary.steps = example.steps;
  summary.skipped_steps = example.has_skipped ? 2 : 0;
  summary.samples = 40 * summary.steps;
  summary.training_seconds = 0.1 * example.steps;
  summary.final_loss = 0.41;
  summary.validation_loss = 0.5 + 0.01 * example.ratio + 0.001 * example.seed;
  summary.top1 = 0.9 - 0.001 * example.ratio + 0.0001 * example.seed;
  if (example.is_text) {
    summary.perplexity = std::exp(*summary.validation_loss);
    summary.bits_per_byte = *summary.validation_loss / std::numbers::ln2;
    summary.tokens_per_second = 6400;
  }
  summary.samples_per_second = 400;
  summary.step_seconds_median = 0.1;
  summary.epoch_seconds = 3;
  if (!example.is_old) summary.planned_step_seconds = 0.12;
  summary.stages = {
      {0, "cpu", 500, 0.03, 0.05, 0, 0.01, 0.004, 0.8, {9'000'000, 1'000'000, 2'000'000, 5'000'000, 1'000'000}, {}}};
  summary.bubble_share = 0.0;
  if (!example.is_one_stage) {
    const double payload = 32'000.0 / example.ratio;
    const std::string cut = example.is_text ? "block0" : "group0.0";
    summary.boundaries = {{cut, "activations", "fp16", example.ratio, payload, 120, {32'000, 64'000}},
                          {cut, "gradients", "fp16", example.ratio, payload, 120, {32'000, 64'000}}};
    summary.stages.push_back(
        {1, "cpu", 700, 0.02, 0.04, 0.03, 0, 0.004, 0.6, {5'000'000, 1'000'000, 2'000'000, 1'500'000, 500'000}, {}});
    summary.communication_share_exposed = 0.1;
    summary.bubble_share = 0.2;
  }
  if (!example.is_old) {
    summary.started = "2026-01-02T03:04:05+00:00";
    summary.version = "0.1.0";
    for (StageSummary& stage : summary.stages) stage.server = {"0.1.0", "Some CPU", "2.13.0", "AVX512"};
    summary.evaluations = {{example.steps / 2, 0.8, 0.8, 1000, 0.5},
                           {example.steps, *summary.validation_loss, summary.top1, 1000, 0.5}};
  }
  return ToJson(summary);
}

std::string ExampleReportMetrics(const ExampleReport& example) {
  std::string lines;
  for (int step = 1; step <= example.steps; ++step) {
    const double progress = static_cast<double>(step) / example.steps;
    if (example.is_old) {
      absl::StrAppend(&lines, "{\"step\":", step, ",\"loss\":", 2.5 - 2 * progress, "}\n");
      continue;
    }
    MetricsRow row;
    row.step = step;
    row.loss = 0.4 + 2 * std::exp(-4 * progress) + 0.05 * std::sin(2.7 * step);
    row.samples = 40;
    row.step_seconds = 0.1 + 0.01 * std::sin(1.3 * step);
    row.learning_rate = 0.01 * (1 - progress) + 1e-5;
    row.grad_norm = 2 + std::cos(2.0 * step);
    if (example.has_skipped && (step == 7 || step == 8)) {
      row.skipped = true;
      row.loss = std::numeric_limits<double>::quiet_NaN();
      row.grad_norm.reset();
      row.non_finite = {"stage 1: 3 non-finite values in activations"};
    }
    if (example.has_signals) {
      row.signals[example.is_text ? "block0" : "group0.0"] = {{"z_rms", 1 + progress},
                                                              {"z_effective_rank", 2 - 0.5 * progress},
                                                              {"gradient_rms_before", 0.01 * std::exp(-progress)},
                                                              {"gradient_rms_after", 0.02 * std::exp(-progress)}};
    }
    lines += ToJsonLine(row);
  }
  return lines;
}

std::string ExampleTrace(int stages, int steps) {
  Json events = Json::array();
  for (int p = 0; p <= stages; ++p) {
    const std::string name = p == stages ? "coordinator" : absl::StrCat("stage ", p);
    events.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", p}, {"args", {{"name", name}}}});
  }
  double start = 0;
  for (int step = 1; step <= steps; ++step) {
    const double duration = StepMicroseconds(step);
    for (int s = 0; s < stages; ++s) {
      if (s > 0) events.push_back(OfMicroBatch(Span(s, 0, "wait up", "wait", start, 4000.0 * s, step), 0));
      for (int m = 0; m < kMicroBatches; ++m) {
        const double forward = start + 4000 * (m + s), backward = start + 40'000 + 8000 * (m + stages - s);
        events.push_back(OfMicroBatch(Span(s, 0, absl::StrCat("F", m), "forward", forward, 4000, step), m));
        events.push_back(OfMicroBatch(Span(s, 0, absl::StrCat("B", m), "backward", backward, 8000, step), m));
        if (s + 1 < stages) AddTransfer(s, s + 1, 'F', m, forward + 4000, step, &events);
        if (s > 0) AddTransfer(s, s - 1, 'B', m, backward + 8000, step, &events);
      }
      events.push_back(Span(s, 0, "commit", "commit", start + duration - 2000, 1500, step));
    }
    events.push_back(Span(stages, 0, absl::StrCat("step ", step), "step", start, duration, step));
    events.push_back({{"ph", "s"}, {"id", step}, {"pid", 0}, {"tid", 1}, {"ts", start}, {"name", "flow"}});
    start += duration;
  }
  return Json({{"traceEvents", std::move(events)}}).dump();
}

ReportRun MakeExampleReport(const ExampleReport& example) {
  ReportRun run;
  auto record = MakeRunRecord(example.path, ExampleReportJob(example), ExampleReportSummary(example),
                              ExampleReportMetrics(example));
  if (!record.ok()) {
    std::cerr << "example: " << record.status() << std::endl;
    std::abort();
  }
  run.record = *std::move(record);
  if (example.has_trace) {
    std::istringstream json(ExampleTrace(example.is_one_stage ? 1 : 2, 5));
    run.trace = *ParseTrace(json);
  }
  return run;
}

}  // namespace resbm::coordinator
