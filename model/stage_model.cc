#include "model/stage_model.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/full_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/torch/device.h"
#include "model/torch/guard.h"
#include "model/parameters/initialise.h"
#include "model/loss.h"
#include "model/torch/memory.h"
#include "model/optimizer/optimizer.h"
#include "model/parameters/orthonormal.h"
#include "model/optimizer/parameter_groups.h"
#include "model/segment.h"
#include "model/signals.h"
#include "model/stage_io.h"
#include "model/validate/validate.h"
#include "model/parameters/weights.h"
#include "proto/base/status.h"

namespace resbm::model {
namespace {

struct MicroBatch {
  std::int64_t samples = 0;
  SampleIds ids;
  std::vector<SegmentGraph> segments;
  at::Tensor logits;  // a leaf
  at::Tensor loss;    // the sum
};

std::vector<at::Tensor> TensorsOf(const std::vector<Parameter>& parameters) {
  std::vector<at::Tensor> tensors;
  for (const Parameter& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
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
        segments_(MakeSegments(spec_, list_)),
        io_(spec_, options.channels_last, device) {
    for (const Parameter& parameter : list_.all()) {
      if (parameter.buffer) continue;
      infos_.push_back(
          {parameter.name, parameter.tensor.sizes().vec(), static_cast<std::uint64_t>(parameter.tensor.numel())});
      trained_.push_back(parameter);
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

  absl::StatusOr<std::string> SaveWeights() const override { return Save("SaveWeights", list_.all(), TensorsOf(list_.all())); }
  absl::StatusOr<std::string> SaveGradients() const override {
    return Save("SaveGradients", trained_, gradients_);
  }

  const std::vector<ParameterInfo>& parameters() const override { return infos_; }

  using StageModel::Forward;
  absl::StatusOr<ForwardResult> Forward(int micro_batch, const EncodedTensors& input, const EncodedTensor* target,
                                        const SampleIds& samples) override {
    return Enter("Forward", [&]() -> absl::StatusOr<ForwardResult> {
      if (graphs_.count(micro_batch) > 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(where_, ": micro-batch ", micro_batch, " was forwarded already"));
      }
      at::AutoGradMode gradients(true);
      MicroBatch graph;
      graph.ids = samples;
      RESBM_ASSIGN_OR_RETURN(ForwardResult result, Run(input, target, &graph));
      graphs_.emplace(micro_batch, std::move(graph));
      return result;
    });
  }

  absl::StatusOr<ForwardResult> Evaluate(const EncodedTensors& input, const EncodedTensor* target) override {
    return Enter("Evaluate", [&]() -> absl::StatusOr<ForwardResult> {
      c10::NoGradGuard no_grad;
      return Run(input, target, nullptr);
    });
  }

  using StageModel::Backward;
  absl::StatusOr<BackwardResult> Backward(int micro_batch, const EncodedTensors& gradients,
                                          double loss_scale) override {
    return Enter("Backward", [&]() -> absl::StatusOr<BackwardResult> {
      RESBM_RETURN_IF_ERROR(CheckReady());
      const auto found = graphs_.find(micro_batch);
      if (found == graphs_.end()) {
        return absl::InvalidArgumentError(absl::StrCat(where_, ": micro-batch ", micro_batch,
                                                       " has no graph: not forwarded, or taken backward already"));
      }
      RESBM_ASSIGN_OR_RETURN(Tensors incoming, IncomingGradients(gradients, found->second.samples));
      MicroBatch graph = std::move(found->second);
      graphs_.erase(found);
      dirty_ = true;
      return RunBackward(graph, std::move(incoming), loss_scale);
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
      for (const Parameter& parameter : list_.all()) {
        if (parameter.orthonormal) RetractOrthonormal(parameter.tensor);
      }
      SettleBuffers(/*commit=*/true);
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
      SettleBuffers(/*commit=*/false);
      ZeroGradients();
      return absl::OkStatus();
    });
  }

  MemoryUse Memory() const override {
    const AllocatorUse use = AllocatorUseOf(device_);
    MemoryUse memory;
    memory.live_bytes = use.live_bytes;
    memory.peak_bytes = use.peak_bytes;
    for (const Parameter& parameter : list_.all()) memory.weights_bytes += parameter.tensor.nbytes();
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

  absl::StatusOr<std::string> Save(absl::string_view what, const std::vector<Parameter>& names,
                                   const std::vector<at::Tensor>& tensors) const {
    return Enter(what, [&]() -> absl::StatusOr<std::string> {
      RESBM_RETURN_IF_ERROR(CheckReady());
      return SaveTensors(names, tensors);
    });
  }

  // Fresh gradients and optimizer state for new weights.
  absl::Status StartOver() {
    graphs_.clear();
    SettleBuffers(/*commit=*/false);
    if (optimizer_ == nullptr) {
      c10::NoGradGuard no_grad;
      std::vector<at::Tensor> weights = TensorsOf(trained_);
      std::vector<at::Tensor> gradients;
      for (const at::Tensor& weight : weights) gradients.push_back(at::zeros_like(weight));
      std::vector<OptimizedParameter> optimized;
      for (const Parameter& parameter : trained_) optimized.push_back(InGroup(spec_, parameter));
      std::unique_ptr<Optimizer> optimizer = MakeOptimizer(spec_.optimizer, optimized);
      // Autograd adds to a gradient that is there in place.
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i].mutable_grad() = gradients[i];
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

  // Keeps what the step has made of buffers, or forgets it.
  void SettleBuffers(bool commit) {
    c10::NoGradGuard no_grad;
    for (const Parameter& parameter : list_.all()) {
      at::Tensor committed = parameter.tensor;
      at::Tensor staged = parameter.staged;
      if (!staged.defined()) continue;
      commit ? committed.copy_(staged) : staged.copy_(committed);
    }
  }

  void ZeroGradients() {
    forward_signalled_ = backward_signalled_ = false;
    if (!dirty_ || gradients_.empty()) return;
    c10::NoGradGuard no_grad;
    at::_foreach_zero_(gradients_);
    dirty_ = false;
  }

  // Segment by segment, what passes between two of them by way of the codec. Keeps the graph if there is one.
  absl::StatusOr<ForwardResult> Run(const EncodedTensors& input, const EncodedTensor* target, MicroBatch* graph) const {
    RESBM_RETURN_IF_ERROR(CheckReady());
    if (!spec_.is_last() && target != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(where_, ": only the last stage takes labels"));
    }
    Tensors x;
    if (const auto& before = segments_.front().before; before.has_value()) {
      RESBM_ASSIGN_OR_RETURN(x, io_.DecodeActivations(*before, input, 0));
    } else {
      RESBM_ASSIGN_OR_RETURN(at::Tensor images, io_.ModelInput(input));
      x.push_back(std::move(images));
    }
    const std::int64_t samples = x[0].size(0);
    if (graph != nullptr) {
      graph->samples = samples;
      RESBM_RETURN_IF_ERROR(CheckIds(graph->ids, samples));
    }
    at::Tensor labels;
    if (spec_.is_last()) {
      RESBM_ASSIGN_OR_RETURN(labels, io_.Labels(target, samples));
    }
    ForwardResult result;
    const bool signals = spec_.signals && graph != nullptr && !std::exchange(forward_signalled_, true);
    for (const Segment& segment : segments_) {
      SegmentGraph* part = graph == nullptr ? nullptr : &graph->segments.emplace_back();
      const Tensors output = segment.Forward(x, PassOf(graph), part);
      if (!segment.after.has_value()) {
        TakeLoss(output[0], labels, graph, result);
        break;
      }
      if (signals) AddSignals(*segment.after, output[0], result);
      EncodedTensors encoded = io_.EncodeActivations(*segment.after, output, result.non_finite);
      if (&segment == &segments_.back()) {
        result.activations = std::move(encoded);
      } else {
        RESBM_ASSIGN_OR_RETURN(x, io_.DecodeActivations(*segment.after, encoded, samples));
      }
    }
    return result;
  }

  Pass PassOf(const MicroBatch* graph) const {
    return {.training = graph != nullptr, .seed = spec_.seed, .samples = graph == nullptr ? nullptr : &graph->ids};
  }

  absl::Status CheckIds(const SampleIds& ids, std::int64_t samples) const {
    if (ids.indices.empty() || static_cast<std::int64_t>(ids.indices.size()) == samples) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(where_, ": ", ids.indices.size(), " sample indices for ", samples, " samples"));
  }

  static void AddSignals(const BoundarySpec& boundary, const at::Tensor& z, ForwardResult& result) {
    result.signals.push_back({boundary.cut_point, "z_rms", RootMeanSquare(z)});
    // Values without channels (of top-k) have no directions.
    if (z.dim() < 3) return;
    result.signals.push_back({boundary.cut_point, "z_effective_rank", EffectiveRank(z, z.dim() == 3 ? 2 : 1)});
  }

  void TakeLoss(const at::Tensor& output, const at::Tensor& labels, MicroBatch* graph, ForwardResult& result) const {
    // A leaf, so that what comes before may be computed again.
    at::Tensor logits = output.detach();
    if (graph != nullptr) logits.requires_grad_(true);
    const LossOfMicroBatch loss = CrossEntropy(logits, labels);
    result.loss_sum = loss.sum.item<double>();
    result.weight = loss.weight;
    result.metric_sums = {loss.correct};
    if (!std::isfinite(result.loss_sum)) result.non_finite.push_back({"loss", 1});
    if (graph == nullptr) return;
    graph->logits = std::move(logits);
    graph->loss = loss.sum;
  }

  absl::StatusOr<Tensors> IncomingGradients(const EncodedTensors& gradients, std::int64_t samples) const {
    const auto& after = segments_.back().after;
    if (after.has_value()) return io_.DecodeGradients(*after, gradients, samples);
    if (gradients.empty()) return Tensors();
    return absl::InvalidArgumentError(absl::StrCat(where_, ": the last stage takes no gradient"));
  }

  absl::StatusOr<BackwardResult> RunBackward(MicroBatch& graph, Tensors incoming, double loss_scale) const {
    BackwardResult result;
    const bool signals = spec_.signals && !std::exchange(backward_signalled_, true);
    if (graph.loss.defined()) {
      graph.loss.backward(loss_scale == 1 ? at::Tensor() : at::full_like(graph.loss, loss_scale));
      graph.loss.reset();
      incoming = {std::exchange(graph.logits, at::Tensor()).grad()};
    }
    for (std::size_t i = segments_.size(); i-- > 0;) {
      const Segment& segment = segments_[i];
      SegmentGraph part = std::move(graph.segments[i]);
      graph.segments.pop_back();
      SegmentSignals seen;
      Tensors outgoing =
          segment.Backward(std::move(part), std::move(incoming), PassOf(&graph), signals ? &seen : nullptr);
      if (signals) AddSignals(segment, seen, loss_scale, result);
      if (!segment.before.has_value()) break;
      EncodedTensors encoded = io_.EncodeGradients(*segment.before, outgoing, result.non_finite);
      outgoing.clear();
      if (i == 0) {
        result.gradients = std::move(encoded);
      } else {
        RESBM_ASSIGN_OR_RETURN(incoming, io_.DecodeGradients(*segment.before, encoded, graph.samples));
      }
    }
    return result;
  }

  static void AddSignals(const Segment& segment, const SegmentSignals& seen, double loss_scale,
                         BackwardResult& result) {
    if (segment.after.has_value()) {
      result.signals.push_back({segment.after->cut_point, "gradient_rms_before", seen.before_encoder / loss_scale});
    }
    if (segment.before.has_value()) {
      result.signals.push_back({segment.before->cut_point, "gradient_rms_after", seen.after_decoder / loss_scale});
    }
  }

  // Constant after construction.
  const StageSpec spec_;
  const ComputeOptions options_;
  const c10::Device device_;
  const std::string where_;
  mutable std::thread::id thread_;
  ParameterList list_;
  std::vector<Segment> segments_;
  StageIo io_;
  std::vector<ParameterInfo> infos_;
  std::vector<Parameter> trained_;  // those of list_ that are no buffers

  // Since the first weights.
  std::vector<at::Tensor> gradients_;  // the weights' grad()
  std::unique_ptr<Optimizer> optimizer_;
  bool dirty_ = false;  // a gradient may be other than zero
  // Whether this step's signals were taken.
  mutable bool forward_signalled_ = false;
  mutable bool backward_signalled_ = false;
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
