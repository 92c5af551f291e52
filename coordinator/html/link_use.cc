#include "coordinator/html/link_use.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace resbm::coordinator {
namespace {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Gathered {
  std::int64_t bytes = 0;
  std::vector<double> send_us, receive_us;
};

}  // namespace

std::vector<LinkUse> LinkUses(const TraceRecord& trace) {
  std::map<std::pair<int, int>, Gathered> links;
  const std::int64_t warm_up = trace.steps.size() > 1 ? trace.steps.front().step : 0;
  for (const TraceSpan& span : trace.spans) {
    if (span.step <= warm_up) continue;
    const bool down_lane = span.lane == TraceLane::kSendDown || span.lane == TraceLane::kReceiveDown;
    // "Down" is where the neighbour sits: the next stage; the coordinator, beyond the ends, is no stage.
    const int neighbour = span.stage + (down_lane ? 1 : -1);
    if (neighbour < 0 || neighbour >= trace.stages) continue;
    if (span.lane == TraceLane::kSendDown || span.lane == TraceLane::kSendUp) {
      Gathered& link = links[{span.stage, neighbour}];
      link.bytes += span.bytes;
      link.send_us.push_back(span.duration_us);
    } else if (span.lane == TraceLane::kReceiveDown || span.lane == TraceLane::kReceiveUp) {
      links[{neighbour, span.stage}].receive_us.push_back(span.duration_us);
    }
  }
  std::vector<LinkUse> uses;
  for (const auto& [ends, link] : links) {
    if (link.send_us.empty()) continue;
    uses.push_back({ends.first, ends.second, static_cast<std::int64_t>(link.send_us.size()), link.bytes,
                    Median(link.send_us), Median(link.receive_us)});
  }
  return uses;
}

}  // namespace resbm::coordinator
