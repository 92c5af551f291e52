// What the compute thread is asked to do, one piece at a time, and what comes back. The state machine makes
// Work, a Computer does it; neither knows how the other does its part.
#ifndef RESBM_STAGE_SERVER_CORE_WORK_H_
#define RESBM_STAGE_SERVER_CORE_WORK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/base/encoded_tensor.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::stage_server {

// Builds the stage, replacing what was there, and gives it its weights.
struct Load {
  v1::StageSpec spec;
  // A seed for initial weights, or a safetensors file (never null).
  std::variant<std::uint64_t, std::shared_ptr<const std::string>> weights;
  // With a file: it may lack parameters, which start from this seed.
  std::optional<std::uint64_t> seed = std::nullopt;
};

struct Forward {
  std::uint32_t micro_batch = 0;
  EncodedTensors input;
  std::optional<EncodedTensor> target;  // last stage only
  // Which samples these are: what dropout derives from. May be empty.
  std::uint64_t epoch = 0;
  std::vector<std::uint64_t> sample_indices;
  std::uint64_t step = 0;  // here and below: for those who profile
};

struct Backward {
  std::uint32_t micro_batch = 0;
  EncodedTensors gradients;  // empty on the last stage
  double loss_scale = 1;     // last stage: what the loss is multiplied by
  std::uint64_t step = 0;
};

// After the last backward of a step: the squared norms of its gradient sums.
struct Finish {
  std::uint64_t step = 0;
};

struct Apply {
  float gradient_scale = 1;
  double learning_rate = 0;
  std::uint64_t step = 0;
};

// Forgets graphs and gradients of an unfinished or skipped step; weights stay.
struct Drop {};

struct EvaluateForward {
  std::uint32_t micro_batch = 0;
  EncodedTensors input;
  std::optional<EncodedTensor> target;
};

// Serializes the weights.
struct SaveShard {};

// Forgets the stage and frees its memory.
struct Unload {};

using Work = std::variant<Load, Forward, Backward, Finish, Apply, Drop, EvaluateForward, SaveShard, Unload>;

struct NonFiniteValues {
  std::string where;
  std::uint64_t count = 0;
};

struct ParameterSize {
  std::string name;
  std::uint64_t values = 0;
};

// Bytes of the compute device's allocator.
struct ComputeMemory {
  std::uint64_t live_bytes = 0;
  // Since the last Finish or Load.
  std::uint64_t peak_bytes = 0;
  std::uint64_t weights_bytes = 0;
  std::uint64_t gradients_bytes = 0;
  std::uint64_t optimizer_bytes = 0;
};

struct WorkResult {
  // Not OK: nothing else but `seconds` means anything. After a failed Load or Apply the stage is unloaded;
  // after any other failure its weights are as they were.
  absl::Status status;
  // Forward and EvaluateForward: what crosses downstream, empty on the last stage. Backward: the gradients
  // that cross upstream, empty on the first stage.
  EncodedTensors outputs;
  // Forward and EvaluateForward on the last stage: sums over the micro-batch.
  double loss_sum = 0;
  double weight = 0;
  std::vector<double> metric_sums;
  // Counted by this stage's own codecs and loss; a received tensor was counted by its sender.
  std::vector<NonFiniteValues> non_finite;
  // Forward and Backward of a step's first micro-batch, if the spec wants them.
  std::vector<v1::Signal> signals;
  // Finish: parameters in global order, of the undivided sums.
  std::vector<double> squared_norms;
  // Load: the same order.
  std::vector<ParameterSize> parameters;
  // Load of a file: tensors without use here, and parameters that started from the seed.
  std::vector<std::string> unused_tensors;
  std::vector<std::string> seeded_parameters;
  // SaveShard.
  std::shared_ptr<const std::string> shard;
  ComputeMemory memory;
  double seconds = 0;
  // When it began, by the state machine's clock: from whoever lets a Computer run.
  absl::Duration began;
};

class Computer {
 public:
  virtual ~Computer() = default;
  // Does one piece of work to its end. Always from the same thread, never two at once. Reports every error
  // in the result: out of memory is RESOURCE_EXHAUSTED, a spec that does not fit INVALID_ARGUMENT, work
  // before a Load FAILED_PRECONDITION.
  virtual WorkResult Run(const Work& work) = 0;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_CORE_WORK_H_
