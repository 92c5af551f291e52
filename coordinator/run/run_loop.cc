#include "coordinator/run/run_loop.h"

#include <algorithm>

namespace resbm::coordinator {
namespace {

// The longest wait, and how long may pass from look to look before it is no wait any more.
constexpr absl::Duration kLook = absl::Seconds(1);
constexpr absl::Duration kStandstill = absl::Seconds(2);

}  // namespace

void RunUntilFinished(EventQueue* events, const Clock& clock, RunDriver* driver) {
  absl::Duration looked = clock.Now();
  const auto look = [&] {
    const absl::Duration now = clock.Now();
    if (now - looked > kStandstill) driver->OnStandstill(now - looked - kLook);
    looked = now;
  };
  while (!driver->finished()) {
    const absl::Duration wait = std::min(driver->NextDeadline() - clock.Now(), kLook);
    const std::deque<EventQueue::Event> came = events->PopAll(wait);
    look();
    for (const EventQueue::Event& event : came) event();
    look();
    driver->OnTimer();  // also when events never cease
  }
}

}  // namespace resbm::coordinator
