// The order in which this stage computes a step or an evaluation, validated.
#ifndef RESBM_STAGE_SERVER_CORE_PROGRAM_H_
#define RESBM_STAGE_SERVER_CORE_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::stage_server {

struct ProgramAction {
  bool backward = false;
  std::uint32_t micro_batch = 0;
};

struct Program {
  bool evaluation = false;
  std::vector<ProgramAction> actions;
  std::uint32_t window = 0;
  std::uint32_t micro_batches = 0;
  // Most micro-batches that are ever forwarded and not yet taken backward; 0 in an evaluation.
  std::uint32_t most_in_flight = 0;

  // INVALID_ARGUMENT, naming the program and the action: no mode, no actions or too many, window 0; forwards
  // not 0, 1, 2, ...; TRAIN: backwards not 0, 1, 2, ..., one for each forward and after it, or more in flight
  // than the window; EVALUATE: a backward.
  static absl::StatusOr<Program> FromProto(const v1::DefineProgram& definition);
};

// Of one program; more than any sensible schedule has.
inline constexpr int kMaxActions = 1 << 16;

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_CORE_PROGRAM_H_
