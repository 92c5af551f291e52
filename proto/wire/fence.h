// Fences, compared: (epoch, generation), in that order; and as text.
#ifndef RESBM_PROTO_WIRE_FENCE_H_
#define RESBM_PROTO_WIRE_FENCE_H_

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "proto/resbm/v1/link.pb.h"

namespace resbm::wire {

inline bool Newer(const v1::Fence& a, const v1::Fence& b) {
  return std::make_tuple(a.epoch(), a.generation()) > std::make_tuple(b.epoch(), b.generation());
}

inline bool SameFence(const v1::Fence& a, const v1::Fence& b) {
  return a.epoch() == b.epoch() && a.generation() == b.generation();
}

// "3.1", as metrics.jsonl has it.
inline std::string FenceText(const v1::Fence& fence) { return absl::StrCat(fence.epoch(), ".", fence.generation()); }

}  // namespace resbm::wire

#endif  // RESBM_PROTO_WIRE_FENCE_H_
