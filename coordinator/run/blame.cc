#include "coordinator/run/blame.h"

#include <cstddef>

#include "absl/strings/str_format.h"

namespace resbm::coordinator {
namespace {

constexpr absl::Duration kSilence = absl::Seconds(5);

}  // namespace

Blame FindBlame(absl::Span<const StageSign> stages) {
  const int count = static_cast<int>(stages.size());
  for (int s = 0; s < count; ++s) {
    if (!stages[s].done && stages[s].since_heard > kSilence) {
      return {s, absl::StrFormat("nothing was heard of it for %.0f s", absl::ToDoubleSeconds(stages[s].since_heard))};
    }
  }
  // Follow who waits for whom, from the first that waits; a chain of `count` hops has come round.
  int at = 0;
  while (at < count && (stages[at].done || !stages[at].waiting_for.has_value())) ++at;
  if (at == count) {
    at = 0;
    while (at + 1 < count && stages[at].done) ++at;
    return {at, "it computes, and no stage waits for another; the stall limit may be too short for this model"};
  }
  for (int hops = 0; hops < count; ++hops) {
    const v1::WaitingFor& w = *stages[at].waiting_for;
    const int next = w.direction() == v1::UP ? at - 1 : at + 1;
    if (!w.link_connected()) {
      return {next, absl::StrFormat("stage %d waits for micro-batch %d over a link that is not connected", at,
                                    w.micro_batch())};
    }
    if (next < 0 || next >= count) {
      return {next, absl::StrFormat("stage %d waits for micro-batch %d from the coordinator", at, w.micro_batch())};
    }
    if (stages[next].done) {
      return {next, absl::StrFormat("stage %d waits for its micro-batch %d, which it has handed to the link", at,
                                    w.micro_batch())};
    }
    if (!stages[next].waiting_for.has_value()) {
      return {next, absl::StrFormat("stage %d waits for its micro-batch %d", at, w.micro_batch())};
    }
    at = next;
  }
  return {at, "the stages wait for each other"};
}

}  // namespace resbm::coordinator
