// Names of a stage's state (weights, optimizer, buffers): a hash chained over what made it. Two stages with
// one state_id took the same decisions from the same start.
#ifndef RESBM_COORDINATOR_RUN_STATE_ID_H_
#define RESBM_COORDINATOR_RUN_STATE_ID_H_

#include <cstdint>
#include <string_view>

#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// Of freshly initialised or restored weights: `origin` is what they came from (the job's text and seed, or
// the hash of a file). Never 0.
std::uint64_t InitialStateId(std::string_view origin);

// After `decision` on the attempt, from `base`. Never 0.
std::uint64_t NextStateId(std::uint64_t base, const v1::Attempt& attempt, v1::Commit::Decision decision);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_STATE_ID_H_
