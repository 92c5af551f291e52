// Where another machine's clock stands against ours, from questions and answers, as NTP finds it: an answer was
// given at some time between the question and its coming back, most likely in the middle; the shorter the round
// trip, the less it can be off. Between two rounds of questions the other clock is taken to drift evenly.
#ifndef RESBM_COORDINATOR_RUN_CLOCK_MODEL_H_
#define RESBM_COORDINATOR_RUN_CLOCK_MODEL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/base/clock.h"

namespace resbm::coordinator {

// A question, and the other clock in its answer.
struct ClockExchange {
  absl::Duration sent;      // ours
  absl::Duration remote;    // theirs
  absl::Duration received;  // ours
};

// Asks `count` times, until one answer fails to come. `ask`: the other clock, nullopt for no answer.
std::vector<ClockExchange> AskForClock(const Clock& clock, int count,
                                       const std::function<std::optional<absl::Duration>()>& ask);

class ClockModel {
 public:
  // Two machines' clocks drift apart by less: seconds a second.
  static constexpr double kMostDrift = 1e-4;
  // Older rounds are forgotten.
  static constexpr std::size_t kMostRounds = 1024;

  // What was asked at about one time, later than the rounds before. Only the exchange with the least round trip
  // counts. So soon after the last round that drift could not be told from noise, the closer of the two replaces the
  // other.
  void AddRound(absl::Span<const ClockExchange> exchanges);

  // Of the other clock, on ours. Linear between rounds, constant before the first and after the last. Only when known.
  absl::Duration ToLocal(absl::Duration remote) const;

  bool known() const { return !rounds_.empty(); }
  // Our time of the last round.
  absl::Duration known_until() const { return asked_; }
  // No round's offset is off by more: half its least round trip, or what may have drifted where a round was left out.
  absl::Duration error_bound() const;
  std::size_t rounds() const { return rounds_.size(); }

 private:
  struct Round {
    absl::Duration remote;
    absl::Duration offset;  // ours less theirs
    absl::Duration error;
  };

  std::deque<Round> rounds_;
  absl::Duration asked_ = -absl::InfiniteDuration();
  absl::Duration drift_unseen_ = absl::ZeroDuration();
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_CLOCK_MODEL_H_
