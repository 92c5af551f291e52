// The part of a StageSpec that the state machine itself needs, validated: where the stage stands, and what
// crosses its two links.
#ifndef RESBM_STAGE_SERVER_CORE_STAGE_SHAPE_H_
#define RESBM_STAGE_SERVER_CORE_STAGE_SHAPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/resbm/v1/control.pb.h"
#include "proto/resbm/v1/layer.pb.h"

namespace resbm::stage_server {

// What one direction of a link carries for a micro-batch.
struct TensorShape {
  std::vector<std::int64_t> dims;  // without the batch dimension
  v1::Codec codec = v1::CODEC_UNSPECIFIED;
  v1::WireDtype dtype = v1::WIRE_DTYPE_UNSPECIFIED;
};

struct CutBoundary {
  std::string cut_point;
  std::vector<TensorShape> activations;  // at least one
  std::vector<TensorShape> gradients;    // of those that are not integers, in their order
};

struct StageShape {
  std::uint32_t stage = 0;
  std::uint32_t stages = 1;
  TensorShape input;               // first stage only
  TensorShape target;              // last stage only
  std::optional<CutBoundary> up;          // absent on the first stage
  std::optional<CutBoundary> down;        // absent on the last stage
  // Of all stages in order; empty = unlimited.
  std::vector<std::uint32_t> windows;

  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage + 1 == stages; }
  // 0 = unlimited.
  std::uint32_t window_of(std::uint32_t s) const { return windows.empty() ? 0 : windows[s]; }

  // INVALID_ARGUMENT, naming the field: no layers, stage not below stages, a cut without its
  // boundary, a shape with a dimension below 1 or more dimensions than a frame has, a codec that is no codec
  // for activations, no tensor that crosses or too many, none with a gradient, windows of
  // another number than stages, a link key that is not 16 bytes.
  static absl::StatusOr<StageShape> FromSpec(const v1::StageSpec& spec);
};

// What loading the spec will take, before anything is allocated: weights, gradients, and the optimizer's
// state in fp32 (SGD: one value a parameter with momentum, none without; AdamW: two).
v1::MemoryPlan PlanMemory(const v1::StageSpec& spec);
std::uint64_t TotalBytes(const v1::MemoryPlan& plan);

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_CORE_STAGE_SHAPE_H_
