#include "coordinator/report/run_statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/plan/schedule.h"
#include "coordinator/plan/simulate.h"
#include "coordinator/report/median.h"

namespace resbm::coordinator {
namespace {

std::string CodecName(v1::Codec codec) {
  switch (codec) {
    case v1::CODEC_FP32: return "fp32";
    case v1::CODEC_BF16: return "bf16";
    case v1::CODEC_FP16: return "fp16";
    case v1::CODEC_INT8: return "int8";
    case v1::CODEC_INT4: return "int4";
    default: return "unknown";
  }
}

std::string IntegerName(v1::WireDtype dtype) {
  switch (dtype) {
    case v1::UINT8: return "uint8";
    case v1::INT16: return "int16";
    case v1::INT32: return "int32";
    case v1::INT64: return "int64";
    default: return "raw";
  }
}

// "fp16", of several tensors "fp16+int16". Integers come with the activations only.
std::string CodecNames(const v1::BoundarySpec& cut, bool gradients) {
  std::string names;
  for (const v1::WireTensor& tensor : cut.wire()) {
    const bool is_integer = tensor.activation_codec() == v1::CODEC_RAW;
    if (is_integer && gradients) continue;
    absl::StrAppend(&names, names.empty() ? "" : "+",
                    is_integer ? IntegerName(tensor.dtype())
                               : CodecName(gradients ? tensor.gradient_codec() : tensor.activation_codec()));
  }
  return names;
}

double Elements(const v1::BoundarySpec& cut) {
  double elements = 1;
  for (std::int64_t dim : cut.input_shape()) elements *= static_cast<double>(dim);
  return elements;
}

}  // namespace

RunStatistics::RunStatistics(Options options) : options_(std::move(options)), stages_(options_.stages.size()) {}

void RunStatistics::AddStep(const StepStatistics& step) {
  samples_ += step.samples;
  weight_ += step.weight;
  skipped_ += step.skipped ? 1 : 0;
  if (!step.skipped) final_loss_ = step.loss;
  step_seconds_.push_back(step.seconds);
  training_seconds_ += step.seconds;

  if (step.epoch != epoch_) {
    epoch_ = step.epoch;
    epoch_steps_ = 0;
    epoch_seconds_ = 0;
  }
  epoch_seconds_ += step.seconds;
  if (++epoch_steps_ == options_.steps_per_epoch) {
    ++complete_epochs_;
    complete_epoch_seconds_ += epoch_seconds_;
  }

  for (std::size_t s = 0; s < std::min(stages_.size(), step.computed.size()); ++s) {
    const v1::Computed& computed = step.computed[s];
    StageSums& sums = stages_[s];
    v1::WorkTimes& times = sums.times;
    times.set_forward_seconds(times.forward_seconds() + computed.times().forward_seconds());
    times.set_backward_seconds(times.backward_seconds() + computed.times().backward_seconds());
    times.set_waiting_up_seconds(times.waiting_up_seconds() + computed.times().waiting_up_seconds());
    times.set_waiting_down_seconds(times.waiting_down_seconds() + computed.times().waiting_down_seconds());
    times.set_commit_seconds(times.commit_seconds() + computed.times().commit_seconds());
    if (computed.memory().peak_bytes() >= sums.peak.peak_bytes()) sums.peak = computed.memory();
    sums.down_payload += static_cast<double>(computed.bytes().down_payload());
    sums.down_metadata += static_cast<double>(computed.bytes().down_metadata());
    sums.up_payload += static_cast<double>(computed.bytes().up_payload());
    sums.up_metadata += static_cast<double>(computed.bytes().up_metadata());
  }
  AddIdleTime(step);
}

void RunStatistics::AddIdleTime(const StepStatistics& step) {
  if (step.computed.size() != options_.windows.size() || step.micro_batches < 1) return;
  std::vector<double> forward, backward;
  for (const v1::Computed& computed : step.computed) {
    forward.push_back(computed.times().forward_seconds() / step.micro_batches);
    backward.push_back(computed.times().backward_seconds() / step.micro_batches);
  }
  const auto ideal = Simulate(TrainingPrograms(step.micro_batches, options_.windows),
                              FixedTiming(std::move(forward), std::move(backward), 0));
  if (!ideal.ok()) return;
  for (std::size_t s = 0; s < step.computed.size(); ++s) {
    const v1::WorkTimes& times = step.computed[s].times();
    const StageSimulation& stage = ideal->stages[s];
    bubble_seconds_ += ideal->makespan_seconds - stage.busy_seconds;
    const double waited = times.waiting_up_seconds() + times.waiting_down_seconds();
    exposed_seconds_ += std::max(0.0, waited - (stage.end_seconds - stage.busy_seconds));
  }
}

void RunStatistics::AddEvaluation(const EvaluationSummary& evaluation) { evaluations_.push_back(evaluation); }

std::vector<BoundarySummary> RunStatistics::Boundaries() const {
  std::vector<BoundarySummary> boundaries;
  const double steps = static_cast<double>(step_seconds_.size());
  for (std::size_t k = 0; k < options_.cuts.size() && k + 1 < stages_.size(); ++k) {
    const v1::BoundarySpec& cut = options_.cuts[k];
    BoundarySummary boundary;
    boundary.cut_point = cut.cut_point();
    if (cut.crossing_channels() > 0) boundary.ratio = cut.in_channels() / cut.crossing_channels();
    if (cut.kept() > 0) boundary.ratio = std::llround(Elements(cut) / static_cast<double>(cut.kept()));
    const double elements = Elements(cut) * static_cast<double>(samples_) / steps;
    boundary.uncompressed_bytes = {2 * elements, 4 * elements};

    boundary.direction = "activations";
    boundary.codec = CodecNames(cut, /*gradients=*/false);
    boundary.payload_bytes = stages_[k].down_payload / steps;
    boundary.metadata_bytes = stages_[k].down_metadata / steps;
    boundaries.push_back(boundary);

    boundary.direction = "gradients";
    boundary.codec = CodecNames(cut, /*gradients=*/true);
    boundary.payload_bytes = stages_[k + 1].up_payload / steps;
    boundary.metadata_bytes = stages_[k + 1].up_metadata / steps;
    boundaries.push_back(boundary);
  }
  return boundaries;
}

Summary RunStatistics::Summarize() const {
  Summary summary;
  summary.name = options_.name;
  summary.started = options_.started;
  summary.version = options_.version;
  summary.steps = static_cast<std::int64_t>(step_seconds_.size());
  summary.skipped_steps = skipped_;
  summary.samples = samples_;
  summary.training_seconds = training_seconds_;
  summary.final_loss = final_loss_;
  summary.evaluations = evaluations_;
  if (!evaluations_.empty()) {
    const double loss = evaluations_.back().loss;
    summary.top1 = evaluations_.back().top1;
    summary.validation_loss = loss;
    if (options_.is_text) {
      summary.perplexity = std::exp(loss);
      summary.bits_per_byte = loss / std::numbers::ln2;
    }
  }
  const double steps = std::max<double>(1, static_cast<double>(summary.steps));
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const v1::WorkTimes& times = stages_[s].times;
    const v1::MemoryUse& peak = stages_[s].peak;
    StageSummary& stage = summary.stages.emplace_back();
    stage.stage = static_cast<std::int64_t>(s);
    stage.device = options_.stages[s].device;
    stage.parameters = options_.stages[s].parameters;
    stage.server = options_.stages[s].server;
    stage.forward_seconds = times.forward_seconds() / steps;
    stage.backward_seconds = times.backward_seconds() / steps;
    stage.waiting_up_seconds = times.waiting_up_seconds() / steps;
    stage.waiting_down_seconds = times.waiting_down_seconds() / steps;
    stage.commit_seconds = times.commit_seconds() / steps;
    if (training_seconds_ > 0) {
      stage.utilization = (times.forward_seconds() + times.backward_seconds()) / training_seconds_;
    }
    stage.peak_memory = {static_cast<std::int64_t>(peak.peak_bytes()), static_cast<std::int64_t>(peak.weights_bytes()),
                         static_cast<std::int64_t>(peak.optimizer_bytes()),
                         static_cast<std::int64_t>(peak.activations_bytes()),
                         static_cast<std::int64_t>(peak.buffers_bytes())};
  }
  if (step_seconds_.empty()) return summary;
  summary.boundaries = Boundaries();
  summary.step_seconds_median = Median(step_seconds_);
  if (complete_epochs_ > 0) summary.epoch_seconds = complete_epoch_seconds_ / static_cast<double>(complete_epochs_);
  if (training_seconds_ > 0) {
    summary.samples_per_second = static_cast<double>(samples_) / training_seconds_;
    if (options_.is_text) summary.tokens_per_second = weight_ / training_seconds_;
    const double stage_seconds = training_seconds_ * static_cast<double>(stages_.size());
    summary.bubble_share = std::clamp(bubble_seconds_ / stage_seconds, 0.0, 1.0);
    summary.communication_share_exposed = std::clamp(exposed_seconds_ / stage_seconds, 0.0, 1.0);
  }
  return summary;
}

}  // namespace resbm::coordinator
