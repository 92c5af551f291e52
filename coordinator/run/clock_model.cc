#include "coordinator/run/clock_model.h"

#include <algorithm>

namespace resbm::coordinator {

std::vector<ClockExchange> AskForClock(const Clock& clock, int count,
                                       const std::function<std::optional<absl::Duration>()>& ask) {
  std::vector<ClockExchange> exchanges;
  for (int i = 0; i < count; ++i) {
    const absl::Duration sent = clock.Now();
    const std::optional<absl::Duration> remote = ask();
    if (!remote.has_value()) break;
    exchanges.push_back({sent, *remote, clock.Now()});
  }
  return exchanges;
}

void ClockModel::AddRound(absl::Span<const ClockExchange> exchanges) {
  const auto best = std::min_element(exchanges.begin(), exchanges.end(), [](const auto& a, const auto& b) {
    return a.received - a.sent < b.received - b.sent;
  });
  if (best == exchanges.end()) return;
  const absl::Duration error = (best->received - best->sent) / 2;
  const absl::Duration middle = best->sent + error;
  const Round round = {best->remote, middle - best->remote, error};
  asked_ = best->received;
  if (!rounds_.empty()) {
    Round& last = rounds_.back();
    const absl::Duration drift = kMostDrift * (round.remote - last.remote);
    if (round.error + last.error > drift) {
      if (round.error < last.error) {
        last = round;
      } else {
        drift_unseen_ = std::max(drift_unseen_, last.error + drift);
      }
      return;
    }
  }
  rounds_.push_back(round);
  if (rounds_.size() > kMostRounds) rounds_.pop_front();
}

absl::Duration ClockModel::error_bound() const {
  absl::Duration bound = drift_unseen_;
  for (const Round& round : rounds_) bound = std::max(bound, round.error);
  return bound;
}

absl::Duration ClockModel::ToLocal(absl::Duration remote) const {
  const auto after = std::lower_bound(rounds_.begin(), rounds_.end(), remote,
                                      [](const Round& round, absl::Duration time) { return round.remote < time; });
  if (after == rounds_.begin()) return remote + after->offset;
  const Round& before = *std::prev(after);
  if (after == rounds_.end()) return remote + before.offset;
  const double part = absl::FDivDuration(remote - before.remote, after->remote - before.remote);
  return remote + before.offset + part * (after->offset - before.offset);
}

}  // namespace resbm::coordinator
