// One stage's share of the model: the decoder of the boundary before it, its layers with the uncut
// boundaries between them, and the encoder of the boundary after it. Computes micro-batches, holds the
// gradients of a step until it is applied or dropped, and the optimizer's state.
//
// An uncut boundary takes the same path as a cut one (detached leaf, encode, decode, in both directions),
// so results are bit-equal however the model is cut.
//
// Threads: for one thread at a time. LibTorch's thread count belongs to the thread and is set again when the
// calling thread changes.
#ifndef RESBM_MODEL_STAGE_MODEL_H_
#define RESBM_MODEL_STAGE_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/spec.h"
#include "proto/base/encoded_tensor.h"

namespace resbm::model {

struct ParameterInfo {
  std::string name;  // PyTorch state_dict name
  std::vector<std::int64_t> shape;
  std::uint64_t size = 0;  // values
};

// Of weights from a file.
struct RestoreReport {
  std::vector<std::string> unused_tensors;     // of the file, not the stage's own
  std::vector<std::string> seeded_parameters;  // not in the file
};

// Which samples a micro-batch has: what dropout derives from.
struct SampleIds {
  std::uint64_t epoch = 0;
  // One for each sample; may be empty for a model without dropout.
  std::vector<std::uint64_t> indices;
};

// Of a cut point, of one micro-batch.
struct Signal {
  std::string cut_point;
  // "z_rms", "z_effective_rank" of the first tensor that crosses; "gradient_rms_before" of the gradient that enters
  // what comes before the encoder, "gradient_rms_after" of the one that leaves what comes after the decoder.
  std::string name;
  double value = 0;
};

struct NonFiniteCount {
  std::string where;  // "group0.1 activation", "group0.1 gradient", "loss"
  std::uint64_t count = 0;
};

struct ForwardResult {
  // What crosses the boundary after this stage; empty on the last stage.
  EncodedTensors activations;
  // Last stage only: cross-entropy summed over the micro-batch; its samples, or its tokens that are not masked;
  // [correct].
  double loss_sum = 0;
  double weight = 0;
  std::vector<double> metric_sums;
  // Of this call: every codec applied in it, and the loss. Only counts above 0.
  std::vector<NonFiniteCount> non_finite;
  // Of the step's first micro-batch, if the spec wants them.
  std::vector<Signal> signals;
};

struct BackwardResult {
  // What crosses the boundary before this stage, of each tensor of floating point; empty on the first stage.
  EncodedTensors gradients;
  std::vector<NonFiniteCount> non_finite;
  std::vector<Signal> signals;
};

struct MemoryUse {
  std::uint64_t live_bytes = 0;  // of LibTorch's allocator in this process
  std::uint64_t peak_bytes = 0;  // since ResetPeak
  std::uint64_t weights_bytes = 0;
  std::uint64_t gradients_bytes = 0;
  std::uint64_t optimizer_bytes = 0;
};

class StageModel {
 public:
  // Builds modules on the device; weights are not set yet. Also sets LibTorch's threads, determinism and
  // TF32 for this process. INVALID_ARGUMENT: a spec that does not fit together (names the layer and both
  // shapes). FAILED_PRECONDITION: the device is not there. RESOURCE_EXHAUSTED: it has not enough memory.
  static absl::StatusOr<std::unique_ptr<StageModel>> Create(const StageSpec& spec, const ComputeOptions& options);
  virtual ~StageModel() = default;

  // "cpu", "cuda:0", ... that `auto` means on this machine. FAILED_PRECONDITION: not there.
  static absl::StatusOr<std::string> ResolveDevice(std::string_view device);
  static std::string LibTorchVersion();
  static std::string CpuCapability();

  // Initial weights from (seed, global layer index) by a CPU generator: the same at every cut. Allocates
  // gradients and the optimizer's state, so that applying a step later cannot run out of memory.
  virtual absl::Status Initialise(std::uint64_t seed) = 0;
  // The same from a safetensors file; takes what is its own and ignores the rest. INVALID_ARGUMENT: a
  // missing name, another shape or dtype (then nothing was changed).
  virtual absl::Status LoadWeights(std::string_view safetensors) = 0;
  // The same; with a seed the file may lack parameters, which then start as Initialise would. Says what was not
  // used and what started from the seed. UNIMPLEMENTED: a fake that does not have it.
  virtual absl::StatusOr<RestoreReport> Restore(std::string_view safetensors, std::optional<std::uint64_t> seed) {
    if (seed.has_value()) return absl::UnimplementedError("this StageModel takes no part of the weights");
    const absl::Status status = LoadWeights(safetensors);
    if (!status.ok()) return status;
    return RestoreReport();
  }
  // Own parameters and buffers, global order, fp32.
  virtual absl::StatusOr<std::string> SaveWeights() const = 0;
  // Those that are trained. Global order: by layer, a boundary after the layer before it; within a module as PyTorch
  // registers them.
  virtual const std::vector<ParameterInfo>& parameters() const = 0;

  // Training. Forward keeps the graph of micro_batch until its Backward. `input`: uint8 images or tokens on the
  // first stage (kRaw), what crossed elsewhere; `target`: labels, last stage only, else null. `samples` is for
  // dropout.
  // INVALID_ARGUMENT: another number of tensors, dims, dtype or codec than the spec's; a micro-batch twice; a label
  // or index out of range.
  // FAILED_PRECONDITION: no weights yet. RESOURCE_EXHAUSTED: out of memory (the message says what to change).
  // INTERNAL: LibTorch threw. After an error the micro-batch is as if it had never been given.
  absl::StatusOr<ForwardResult> Forward(int micro_batch, const EncodedTensors& input, const EncodedTensor* target) {
    return Forward(micro_batch, input, target, SampleIds());
  }
  virtual absl::StatusOr<ForwardResult> Forward(int micro_batch, const EncodedTensors& input,
                                                const EncodedTensor* target, const SampleIds& samples) = 0;
  // Gradient of the loss *sum*. `gradients`: of each tensor of floating point that crossed; empty on the last stage.
  // Adds to the step's gradients. `loss_scale`, a power of two and the same in all of a step and on every stage: on the
  // last one the loss is multiplied by it first; gradients then carry it, signals do not.
  // The same errors; INVALID_ARGUMENT also: this micro-batch was not forwarded. After any other error the
  // gradients are half added: DropStep.
  absl::StatusOr<BackwardResult> Backward(int micro_batch, const EncodedTensors& gradients) {
    return Backward(micro_batch, gradients, 1);
  }
  virtual absl::StatusOr<BackwardResult> Backward(int micro_batch, const EncodedTensors& gradients,
                                                  double loss_scale) = 0;
  // Of the step's gradient sums, undivided, parameters() order, in double.
  virtual absl::StatusOr<std::vector<double>> SquaredNorms() = 0;
  // Multiplies the gradient sums by gradient_scale once and takes the optimizer's step; then the gradients
  // are zero. FAILED_PRECONDITION: micro-batches not taken backward yet; INVALID_ARGUMENT: a number that is not
  // finite; then nothing was changed. After another error the state is half changed: throw the StageModel away.
  virtual absl::Status ApplyStep(float gradient_scale, double learning_rate) = 0;
  // The step's gradient sums, undivided, in the format of SaveWeights: to compare with another implementation.
  // FAILED_PRECONDITION: no weights yet. A fake need not have it.
  virtual absl::StatusOr<std::string> SaveGradients() const {
    return absl::UnimplementedError("this StageModel does not show its gradients");
  }
  // Forgets graphs and gradients of an unfinished or skipped step. Weights are untouched.
  virtual void DropStep() = 0;

  // Without graph; same codecs; may come between the Forwards and Backwards of a step. Leaves parameters,
  // gradients and random state alone. Errors as Forward.
  virtual absl::StatusOr<ForwardResult> Evaluate(const EncodedTensors& input, const EncodedTensor* target) = 0;

  virtual MemoryUse Memory() const = 0;
  virtual void ResetPeakMemory() = 0;
  // Live graphs (micro-batches forwarded and not taken backward).
  virtual int live_graphs() const = 0;
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_STAGE_MODEL_H_
