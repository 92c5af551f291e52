#include "coordinator/html/link_use.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "coordinator/report/median.h"

namespace resbm::coordinator {
namespace {

// What one micro-batch sent over a link in a step, tensor by tensor in the order of time.
struct Transfers {
  std::vector<double> begun_us, received_us;
};

struct Gathered {
  std::int64_t bytes = 0;
  std::vector<double> send_us;
  std::map<std::pair<std::int64_t, std::int64_t>, Transfers> transfers;  // by step and micro-batch

  std::vector<double> Transits() const {
    std::vector<double> transits;
    for (const auto& [key, t] : transfers) {
      for (std::size_t i = 0; i < std::min(t.begun_us.size(), t.received_us.size()); ++i) {
        // Less than nothing is the error of the clocks.
        transits.push_back(std::max(0.0, t.received_us[i] - t.begun_us[i]));
      }
    }
    return transits;
  }
};

}  // namespace

std::vector<LinkUse> LinkUses(const TraceRecord& trace) {
  std::map<std::pair<int, int>, Gathered> links;
  const std::int64_t warm_up = trace.steps.size() > 1 ? trace.steps.front().step : 0;
  for (const TraceSpan& span : trace.spans) {
    if (span.step <= warm_up || span.lane == TraceLane::kCompute) continue;
    const bool down_lane = span.lane == TraceLane::kSendDown || span.lane == TraceLane::kReceiveDown;
    // "Down" is where the neighbour sits: the next stage; the coordinator, beyond the ends, is no stage.
    const int neighbour = span.stage + (down_lane ? 1 : -1);
    if (neighbour < 0 || neighbour >= trace.stages) continue;
    const std::pair<std::int64_t, std::int64_t> key = {span.step, span.micro_batch};
    if (span.lane == TraceLane::kSendDown || span.lane == TraceLane::kSendUp) {
      Gathered& link = links[{span.stage, neighbour}];
      link.bytes += span.bytes;
      link.send_us.push_back(span.duration_us);
      link.transfers[key].begun_us.push_back(span.start_us);
    } else {
      links[{neighbour, span.stage}].transfers[key].received_us.push_back(span.start_us + span.duration_us);
    }
  }
  std::vector<LinkUse> uses;
  for (const auto& [ends, link] : links) {
    if (link.send_us.empty()) continue;
    const std::vector<double> transits = link.Transits();
    uses.push_back({ends.first, ends.second, static_cast<std::int64_t>(link.send_us.size()), link.bytes,
                    Median(link.send_us), transits.empty() ? 0 : Median(transits)});
  }
  return uses;
}

}  // namespace resbm::coordinator
