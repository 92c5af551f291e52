// What a stage computes, as plain structs: the torch-free mirror of proto/resbm/v1/layer.proto, whose
// comments say what each field means. model/ does not know protobuf.
#ifndef RESBM_MODEL_SPEC_H_
#define RESBM_MODEL_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "proto/base/encoded_tensor.h"

namespace resbm::model {

struct ConvStem {
  int in_channels = 0;
  int out_channels = 0;
  int kernel = 3;
  int stride = 1;
  int norm_groups = 1;
};

struct ResidualBlock {
  bool bottleneck = false;
  int in_channels = 0;
  int out_channels = 0;
  int stride = 1;
  int norm_groups = 1;
  int inner_norm_groups = 1;
};

struct GlobalPool {};

struct Flatten {};

struct Linear {
  int in_features = 0;
  int out_features = 0;
  bool relu = false;
};

struct LayerSpec {
  int index = 0;  // global
  std::string name;
  std::variant<ConvStem, ResidualBlock, GlobalPool, Flatten, Linear> kind;
  // Without the batch dimension.
  std::vector<std::int64_t> input_shape;
  std::vector<std::int64_t> output_shape;
};

enum class BoundaryKind { kResbm, kIdentity, kLinear, kBottleneck, kIdentityBlock };
enum class Shortcut { kReconstruct, kTransmit, kNone };
enum class LowDimOrder { kNormActConv, kConvConvNorm };
enum class LowDimAttention { kNone, kSqueezeExcite, kSelfAttention };
enum class BoundaryInit { kKaimingFanOut, kKaimingFanIn, kTiedOrthogonal };

struct LowDim {
  int depth = 2;
  int width = 1;
  LowDimOrder order = LowDimOrder::kNormActConv;
  LowDimAttention attention = LowDimAttention::kNone;
};

struct BoundarySpec {
  std::string cut_point;  // name of the layer before it
  int after_layer = 0;    // its global index
  BoundaryKind kind = BoundaryKind::kResbm;
  int in_channels = 0;
  int out_channels = 0;
  int crossing_channels = 0;  // C/r
  int norm_groups = 0;        // 0 = none
  Shortcut shortcut = Shortcut::kReconstruct;
  LowDim low_dim;
  BoundaryInit init = BoundaryInit::kKaimingFanOut;
  double init_gain = 1;
  int stride = 1;
  int block_channels = 0;
  int output_norm_groups = 0;  // 0 = none
  WireCodec activation_codec = WireCodec::kFp16;
  WireCodec gradient_codec = WireCodec::kFp16;
  std::vector<std::int64_t> input_shape;
  std::vector<std::int64_t> wire_shape;
  std::vector<std::int64_t> output_shape;
};

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double dampening = 0;
};

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

struct MuonOptions {
  enum class Adjust { kOriginal, kMatchRmsAdamW };
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;
  int ns_steps = 5;
  Adjust adjust = Adjust::kOriginal;
  AdamWOptions adamw;
  double adamw_rate_ratio = 1;
};

using OptimizerOptions = std::variant<SgdOptions, AdamWOptions, MuonOptions>;

struct StageSpec {
  int stage = 0;
  int stages = 1;
  std::vector<LayerSpec> layers;  // ascending index, without gaps
  // Ascending. The one before layers.front() (its decoder is here) if stage > 0, those after a layer of
  // this stage but the last (whole, uncut), the one after layers.back() (its encoder) if not the last stage.
  std::vector<BoundarySpec> boundaries;
  OptimizerOptions optimizer;
  // First stage: uint8 images become (x / 255 - mean) / std, per channel.
  std::vector<float> input_mean;
  std::vector<float> input_std;
  std::vector<std::int64_t> input_shape;

  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage == stages - 1; }
};

// Where and how a stage computes.
struct ComputeOptions {
  std::string device = "cpu";  // "cpu", "cuda:N"
  // LibTorch's threads. Part of what bit-equal results depend on.
  int threads = 1;
  bool deterministic = true;
  bool channels_last = false;
  // Of LibTorch's tensors in host memory, the whole process; beyond it a call fails as out of memory. 0 = none.
  std::uint64_t memory_limit_bytes = 0;
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_SPEC_H_
