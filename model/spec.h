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
  bool batch_norm = false;
};

struct ResidualBlock {
  bool bottleneck = false;
  int in_channels = 0;
  int out_channels = 0;
  int stride = 1;
  int norm_groups = 1;
  int inner_norm_groups = 1;
  bool batch_norm = false;
};

struct GlobalPool {};

struct Flatten {};

struct Linear {
  int in_features = 0;
  int out_features = 0;
  bool relu = false;
};

struct TokenEmbedding {
  int vocabulary = 0;
  int width = 0;
  double dropout = 0;
};

struct DecoderBlock {
  int width = 0;
  int heads = 0;
  int hidden = 0;
  double dropout = 0;
  double rotary_base = 10000;
  double norm_epsilon = 1e-5;
  bool attention_in_boundary = false;
  bool mlp_in_boundary = false;
};

struct LanguageHead {
  int width = 0;
  int vocabulary = 0;
  double norm_epsilon = 1e-5;
};

enum class BoundaryKind {
  kResbm,
  kIdentity,
  kLinear,
  kBottleneck,
  kIdentityBlock,
  kTopK,
  kInBranch,
  kAdapter
};
enum class Shortcut { kReconstruct, kTransmit, kNone, kDirect, kProjected };
enum class Projection { kTruncate, kOrthogonal, kLearned };
enum class LowDimOrder { kNormActConv, kConvConvNorm };
enum class LowDimAttention { kNone, kSqueezeExcite, kSelfAttention };
enum class BoundaryInit { kKaimingFanOut, kKaimingFanIn, kTiedOrthogonal };

struct LowDim {
  int depth = 2;
  int width = 1;
  LowDimOrder order = LowDimOrder::kNormActConv;
  LowDimAttention attention = LowDimAttention::kNone;
};

// One of the tensors that cross a boundary together.
struct WireTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // without the batch dimension
  WireCodec activation_codec = WireCodec::kFp16;
  WireCodec gradient_codec = WireCodec::kFp16;  // kRaw: integers, no gradient
  WireDtype dtype = WireDtype::kInt64;          // of kRaw

  bool has_gradient() const { return activation_codec != WireCodec::kRaw; }
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
  Projection projection = Projection::kTruncate;
  DecoderBlock decoder_block;
  std::int64_t kept = 0;
  std::vector<WireTensor> wire;
  std::vector<std::int64_t> input_shape;
  std::vector<std::int64_t> output_shape;
  bool recompute = false;
};

// A ResBM block as an ordinary layer.
struct ResbmLayer {
  BoundarySpec block;
};

struct LayerSpec {
  int index = 0;  // global
  std::string name;
  std::variant<ConvStem, ResidualBlock, GlobalPool, Flatten, Linear, TokenEmbedding, DecoderBlock, LanguageHead,
               ResbmLayer>
      kind;
  // Without the batch dimension.
  std::vector<std::int64_t> input_shape;
  std::vector<std::int64_t> output_shape;
  bool recompute = false;
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

// Parameters that are trained otherwise than the rest. A parameter belongs to the first group that it matches.
struct ParameterGroup {
  std::string pattern;  // of names, as a shell's: "boundaries.*", "*.bias"
  double rate_ratio = 1;
  std::optional<double> weight_decay;
};

using OptimizerOptions = std::variant<SgdOptions, AdamWOptions, MuonOptions>;

enum class Loss { kCrossEntropy, kTokenCrossEntropy };
enum class InputKind { kImages, kTokens };
enum class Precision { kFp32, kBf16, kFp16 };

struct StageSpec {
  int stage = 0;
  int stages = 1;
  std::vector<LayerSpec> layers;  // ascending index, without gaps
  // Ascending. The one before layers.front() (its decoder is here) if stage > 0, those after a layer of
  // this stage but the last (whole, uncut), the one after layers.back() (its encoder) if not the last stage.
  std::vector<BoundarySpec> boundaries;
  OptimizerOptions optimizer;
  std::vector<ParameterGroup> parameter_groups;
  // First stage: uint8 images become (x / 255 - mean) / std, per channel.
  std::vector<float> input_mean;
  std::vector<float> input_std;
  std::vector<std::int64_t> input_shape;
  InputKind input = InputKind::kImages;
  Loss loss = Loss::kCrossEntropy;
  std::uint64_t seed = 0;  // of the job; dropout derives from it
  Precision precision = Precision::kFp32;
  bool signals = false;  // of the first micro-batch of each step

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
