#include "coordinator/run/state_id.h"

#include <array>

#include <xxhash.h>

namespace resbm::coordinator {
namespace {

// 0 means "no state".
std::uint64_t NonZero(std::uint64_t hash) { return hash == 0 ? 1 : hash; }

}  // namespace

std::uint64_t InitialStateId(std::string_view origin) { return NonZero(XXH3_64bits(origin.data(), origin.size())); }

std::uint64_t NextStateId(std::uint64_t base, const v1::Attempt& attempt, v1::Commit::Decision decision) {
  const std::array<std::uint64_t, 5> link = {base, attempt.step(), attempt.fence().epoch(),
                                             attempt.fence().generation(), static_cast<std::uint64_t>(decision)};
  return NonZero(XXH3_64bits(link.data(), sizeof(link)));
}

}  // namespace resbm::coordinator
