#include "model/stage_model.h"

#include <ATen/Parallel.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>
#include <c10/core/DeviceGuard.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/codec.h"
#include "model/device.h"
#include "model/encoded_check.h"
#include "model/guard.h"
#include "model/initialise.h"
#include "model/memory.h"
#include "model/optimizer.h"
#include "model/parameter_groups.h"
#include "model/segment.h"
#include "model/validate.h"
#include "model/weights.h"
#include "proto/base/status.h"

namespace resbm::model {
namespace {

// One segment's part of a micro-batch's graph.
struct SegmentGraph {
  at::Tensor input;   // a leaf that gets a gradient; images get none
  at::Tensor output;  // what the encoder gave, or the loss sum
};

struct MicroBatch {
  std::int64_t samples = 0;
  std::vector<SegmentGraph> segments;
};

void Count(std::uint64_t non_finite, const std::string& where, std::vector<NonFiniteCount>& counts) {
  if (non_finite > 0) counts.push_back({where, non_finite});
}

class TorchStageModel : public StageModel {
 public:
  TorchStageModel(const StageSpec& spec, const ComputeOptions& options, c10::Device device)
      : spec_(spec),
        options_(options),
        device_(device),
        where_(absl::StrCat("stage ", spec.stage)),
        thread_(std::this_thread::get_id()),
        list_(device, options.channels_last),
        segments_(MakeSegments(spec_, list_)) {
    for (const Parameter& parameter : list_.all()) {
      infos_.push_back(
          {parameter.name, parameter.tensor.sizes().vec(), static_cast<std::uint64_t>(parameter.tensor.numel())});
      weights_.push_back(parameter.tensor);
    }
    if (spec_.is_first()) {
      mean_ = PerChannel(spec_.input_mean);
      std_ = PerChannel(spec_.input_std);
    }
  }

  absl::Status Initialise(std::uint64_t seed) override {
    return Enter("Initialise", [&]() -> absl::Status {
      for (const Parameter& parameter : list_.all()) model::Initialise(seed, parameter);
      return StartOver();
    });
  }

  absl::Status LoadWeights(std::string_view safetensors) override {
    return Restore(safetensors, std::nullopt).status();
  }

  absl::StatusOr<RestoreReport> Restore(std::string_view safetensors, std::optional<std::uint64_t> seed) override {
    return Enter("LoadWeights", [&]() -> absl::StatusOr<RestoreReport> {
      absl::StatusOr<LoadedParameters> loaded = LoadParameters(safetensors, list_.all(), seed.has_value());
      if (!loaded.ok()) return Annotate(loaded.status(), where_);
      RestoreReport report;
      report.unused_tensors = std::move(loaded->unused);
      for (const std::size_t i : loaded->missing) {
        model::Initialise(*seed, list_.all()[i]);
        report.seeded_parameters.push_back(list_.all()[i].name);
      }
      RESBM_RETURN_IF_ERROR(StartOver());
      return report;
    });
  }

  absl::StatusOr<std::string> SaveWeights() const override { return Save("SaveWeights", weights_); }
  absl::StatusOr<std::string> SaveGradients() const override { return Save("SaveGradients", gradients_); }

  const std::vector<ParameterInfo>& parameters() const override { return infos_; }

  absl::StatusOr<ForwardResult> Forward(int micro_batch, const EncodedTensor& input,
                                        const EncodedTensor* target) override {
    return Enter("Forward", [&]() -> absl::StatusOr<ForwardResult> {
      if (graphs_.count(micro_batch) > 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(where_, ": micro-batch ", micro_batch, " was forwarded already"));
      }
      at::AutoGradMode gradients(true);
      MicroBatch graph;
      RESBM_ASSIGN_OR_RETURN(ForwardResult result, Run(input, target, &graph));
      graphs_.emplace(micro_batch, std::move(graph));
      return result;
    });
  }

  absl::StatusOr<ForwardResult> Evaluate(const EncodedTensor& input, const EncodedTensor* target) override {
    return Enter("Evaluate", [&]() -> absl::StatusOr<ForwardResult> {
      c10::NoGradGuard no_grad;
      return Run(input, target, nullptr);
    });
  }

  absl::StatusOr<BackwardResult> Backward(int micro_batch, const EncodedTensor* gradient) override {
    return Enter("Backward", [&]() -> absl::StatusOr<BackwardResult> {
      RESBM_RETURN_IF_ERROR(CheckReady());
      const auto found = graphs_.find(micro_batch);
      if (found == graphs_.end()) {
        return absl::InvalidArgumentError(absl::StrCat(where_, ": micro-batch ", micro_batch,
                                                       " has no graph: not forwarded, or taken backward already"));
      }
      RESBM_RETURN_IF_ERROR(CheckGradient(gradient, found->second.samples));
      MicroBatch graph = std::move(found->second);
      graphs_.erase(found);
      dirty_ = true;
      return RunBackward(graph, gradient);
    });
  }

  absl::StatusOr<std::vector<double>> SquaredNorms() override {
    return Enter("SquaredNorms", [&]() -> absl::StatusOr<std::vector<double>> {
      RESBM_RETURN_IF_ERROR(CheckReady());
      return SumsOfSquares(gradients_);
    });
  }

  absl::Status ApplyStep(float gradient_scale, double learning_rate) override {
    return Enter("ApplyStep", [&]() -> absl::Status {
      RESBM_RETURN_IF_ERROR(CheckReady());
      if (!graphs_.empty()) {
        return absl::FailedPreconditionError(absl::StrCat(where_, ": ", graphs_.size(),
                                                          " micro-batches were not taken backward yet, the first is ",
                                                          graphs_.begin()->first));
      }
      if (!std::isfinite(gradient_scale) || !std::isfinite(learning_rate)) {
        return absl::InvalidArgumentError(absl::StrCat(where_, ": gradient scale ", gradient_scale, ", learning rate ",
                                                       learning_rate, "; such a step must be skipped"));
      }
      if (gradient_scale != 1 && !gradients_.empty()) {
        c10::NoGradGuard no_grad;
        at::_foreach_mul_(gradients_, gradient_scale);
      }
      optimizer_->Step(learning_rate);
      dirty_ = true;
      ZeroGradients();
      SynchroniseStream(device_);
      return absl::OkStatus();
    });
  }

  void DropStep() override {
    // Nothing is allocated here, so nothing is left to report.
    (void)Enter("DropStep", [&]() -> absl::Status {
      graphs_.clear();
      ZeroGradients();
      return absl::OkStatus();
    });
  }

  MemoryUse Memory() const override {
    const AllocatorUse use = AllocatorUseOf(device_);
    MemoryUse memory;
    memory.live_bytes = use.live_bytes;
    memory.peak_bytes = use.peak_bytes;
    for (const at::Tensor& tensor : weights_) memory.weights_bytes += tensor.nbytes();
    for (const at::Tensor& tensor : gradients_) memory.gradients_bytes += tensor.nbytes();
    if (optimizer_ != nullptr) memory.optimizer_bytes = optimizer_->bytes();
    return memory;
  }
  void ResetPeakMemory() override { ResetAllocatorPeak(device_); }
  int live_graphs() const override { return static_cast<int>(graphs_.size()); }

 private:
  template <typename Function>
  auto Enter(absl::string_view what, Function&& function) const -> decltype(function()) {
    if (thread_ != std::this_thread::get_id()) {
      thread_ = std::this_thread::get_id();
      at::set_num_threads(options_.threads);
    }
    return Guarded(absl::StrCat(where_, ": ", what), [&]() -> decltype(function()) {
      const c10::DeviceGuard guard(device_);
      return function();
    });
  }

  absl::Status CheckReady() const {
    if (optimizer_ != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(where_, ": has no weights yet: Initialise or LoadWeights first"));
  }

  absl::StatusOr<std::string> Save(absl::string_view what, const std::vector<at::Tensor>& tensors) const {
    return Enter(what, [&]() -> absl::StatusOr<std::string> {
      RESBM_RETURN_IF_ERROR(CheckReady());
      return SaveTensors(list_.all(), tensors);
    });
  }

  at::Tensor PerChannel(const std::vector<float>& values) const {
    return at::tensor(at::ArrayRef<float>(values)).view({-1, 1, 1}).to(device_);
  }

  // Fresh gradients and optimizer state for new weights.
  absl::Status StartOver() {
    graphs_.clear();
    if (optimizer_ == nullptr) {
      c10::NoGradGuard no_grad;
      std::vector<at::Tensor> gradients;
      for (const at::Tensor& weight : weights_) gradients.push_back(at::zeros_like(weight));
      std::vector<bool> muon_takes;
      for (const Parameter& parameter : list_.all()) muon_takes.push_back(MuonTakes(spec_, parameter));
      std::unique_ptr<Optimizer> optimizer = MakeOptimizer(spec_.optimizer, weights_, muon_takes);
      // Autograd adds to a gradient that is there in place.
      for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i].mutable_grad() = gradients[i];
      gradients_ = std::move(gradients);
      optimizer_ = std::move(optimizer);
    } else {
      optimizer_->Reset();
      dirty_ = true;
      ZeroGradients();
    }
    SynchroniseStream(device_);
    return absl::OkStatus();
  }

  void ZeroGradients() {
    if (!dirty_ || gradients_.empty()) return;
    c10::NoGradGuard no_grad;
    at::_foreach_zero_(gradients_);
    dirty_ = false;
  }

  // Canonical NCHW as decoded, or with channels innermost: the same whether it crossed a cut or not.
  at::Tensor Laid(const at::Tensor& decoded) const {
    if (!options_.channels_last || decoded.dim() != 4) return decoded;
    return decoded.contiguous(at::MemoryFormat::ChannelsLast);
  }

  absl::StatusOr<at::Tensor> DecodeHere(const EncodedTensor& encoded) const {
    RESBM_ASSIGN_OR_RETURN(const at::Tensor decoded, Decode(encoded, device_));
    return Laid(decoded);
  }

  // Images become (x / 255 - mean) / std; what crossed is decoded.
  absl::StatusOr<at::Tensor> InputOf(const EncodedTensor& input) const {
    if (const auto& before = segments_.front().before; before.has_value()) {
      RESBM_RETURN_IF_ERROR(CheckExpected(input, absl::StrCat(where_, ": activation of \"", before->cut_point, "\""),
                                          before->activation_codec, DtypeOf(before->activation_codec),
                                          before->wire_shape, 0));
      return DecodeHere(input);
    }
    RESBM_RETURN_IF_ERROR(CheckExpected(input, absl::StrCat(where_, ": images"), WireCodec::kRaw, WireDtype::kUint8,
                                        spec_.input_shape, 0));
    RESBM_ASSIGN_OR_RETURN(const at::Tensor images, Decode(input, device_));
    return Laid(images.to(at::kFloat).div_(255).sub_(mean_).div_(std_));
  }

  absl::StatusOr<at::Tensor> TargetOf(const EncodedTensor* target, std::int64_t samples) const {
    if (target == nullptr) return absl::InvalidArgumentError(absl::StrCat(where_, ": the last stage needs labels"));
    RESBM_RETURN_IF_ERROR(
        CheckExpected(*target, absl::StrCat(where_, ": labels"), WireCodec::kRaw, WireDtype::kInt64, {}, samples));
    RESBM_ASSIGN_OR_RETURN(const at::Tensor labels, Decode(*target, c10::Device(c10::DeviceType::CPU)));
    // On a GPU a label out of range would end the process.
    const std::int64_t classes = spec_.layers.back().output_shape.front();
    const auto* values = labels.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < samples; ++i) {
      if (values[i] < 0 || values[i] >= classes) {
        return absl::InvalidArgumentError(absl::StrCat(where_, ": label ", values[i], " of sample ", i,
                                                       " is not one of ", classes, " classes; check the data"));
      }
    }
    return labels.to(device_);
  }

  // Segment by segment, what passes between two of them by way of the codec. Keeps the graph if there is one.
  absl::StatusOr<ForwardResult> Run(const EncodedTensor& input, const EncodedTensor* target, MicroBatch* graph) const {
    RESBM_RETURN_IF_ERROR(CheckReady());
    if (!spec_.is_last() && target != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(where_, ": only the last stage takes labels"));
    }
    RESBM_ASSIGN_OR_RETURN(at::Tensor x, InputOf(input));
    const std::int64_t samples = x.size(0);
    at::Tensor labels;
    if (spec_.is_last()) {
      RESBM_ASSIGN_OR_RETURN(labels, TargetOf(target, samples));
    }
    ForwardResult result;
    for (const Segment& segment : segments_) {
      if (graph != nullptr && segment.before.has_value()) x.requires_grad_(true);
      at::Tensor output = segment.Forward(x);
      if (!segment.after.has_value()) output = LossOf(output, labels, result);
      if (graph != nullptr) graph->segments.push_back({x, output});
      if (!segment.after.has_value()) break;
      EncodedTensor encoded = Encode(output, segment.after->activation_codec);
      Count(encoded.non_finite, absl::StrCat(segment.after->cut_point, " activation"), result.non_finite);
      if (&segment == &segments_.back()) {
        result.activation = std::move(encoded);
      } else {
        RESBM_ASSIGN_OR_RETURN(x, DecodeHere(encoded));
      }
    }
    if (graph != nullptr) graph->samples = samples;
    return result;
  }

  at::Tensor LossOf(const at::Tensor& logits, const at::Tensor& labels, ForwardResult& result) const {
    at::Tensor loss = at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum);
    result.loss_sum = loss.item<double>();
    result.weight = static_cast<double>(labels.size(0));
    result.metric_sums = {logits.detach().argmax(1).eq(labels).sum().item<double>()};
    Count(std::isfinite(result.loss_sum) ? 0 : 1, "loss", result.non_finite);
    return loss;
  }

  absl::Status CheckGradient(const EncodedTensor* gradient, std::int64_t samples) const {
    const auto& after = segments_.back().after;
    if (!after.has_value()) {
      if (gradient == nullptr) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat(where_, ": the last stage takes no gradient"));
    }
    if (gradient == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(where_, ": needs the gradient of \"", after->cut_point, "\""));
    }
    return CheckExpected(*gradient, absl::StrCat(where_, ": gradient of \"", after->cut_point, "\""),
                         after->gradient_codec, DtypeOf(after->gradient_codec), after->wire_shape, samples);
  }

  absl::StatusOr<BackwardResult> RunBackward(MicroBatch& graph, const EncodedTensor* gradient) const {
    BackwardResult result;
    at::Tensor incoming;  // undefined: of a loss
    if (gradient != nullptr) {
      RESBM_ASSIGN_OR_RETURN(incoming, DecodeHere(*gradient));
    }
    for (std::size_t i = segments_.size(); i-- > 0;) {
      // Taken out of the graph, so that each segment's memory is free before the next needs more.
      SegmentGraph part = std::move(graph.segments[i]);
      graph.segments.pop_back();
      if (part.output.requires_grad()) part.output.backward(incoming);
      part.output.reset();
      const auto& before = segments_[i].before;
      if (!before.has_value()) break;
      EncodedTensor encoded = Encode(part.input.grad(), before->gradient_codec);
      Count(encoded.non_finite, absl::StrCat(before->cut_point, " gradient"), result.non_finite);
      part = SegmentGraph();
      if (i == 0) {
        result.gradient = std::move(encoded);
      } else {
        RESBM_ASSIGN_OR_RETURN(incoming, DecodeHere(encoded));
      }
    }
    return result;
  }

  // Constant after construction.
  const StageSpec spec_;
  const ComputeOptions options_;
  const c10::Device device_;
  const std::string where_;
  mutable std::thread::id thread_;
  ParameterList list_;
  std::vector<Segment> segments_;
  std::vector<ParameterInfo> infos_;
  std::vector<at::Tensor> weights_;  // those of list_
  at::Tensor mean_, std_;            // [channels, 1, 1]

  // Since the first weights.
  std::vector<at::Tensor> gradients_;  // the weights' grad()
  std::unique_ptr<Optimizer> optimizer_;
  bool dirty_ = false;  // a gradient may be other than zero
  std::map<int, MicroBatch> graphs_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StageModel>> StageModel::Create(const StageSpec& spec, const ComputeOptions& options) {
  RESBM_RETURN_IF_ERROR(Validate(spec));
  const std::string where = absl::StrCat("stage ", spec.stage);
  if (options.threads < 1) return absl::InvalidArgumentError(absl::StrCat(where, ": threads ", options.threads));
  return Guarded(where, [&]() -> absl::StatusOr<std::unique_ptr<StageModel>> {
    RESBM_ASSIGN_OR_RETURN(const c10::Device device, DeviceOf(options.device));
    CountCpuAllocations(options.memory_limit_bytes);
    ConfigureProcess(options);
    const c10::OptionalDeviceGuard guard(device);
    return std::make_unique<TorchStageModel>(spec, options, device);
  });
}

absl::StatusOr<std::string> StageModel::ResolveDevice(std::string_view device) {
  return Guarded("device", [&]() { return ResolveDeviceName(device); });
}

std::string StageModel::LibTorchVersion() { return TORCH_VERSION; }
std::string StageModel::CpuCapability() { return CpuCapabilityName(); }

}  // namespace resbm::model
