#include "coordinator/run/clock_watch.h"

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "proto/base/clock.h"

namespace resbm::coordinator {
namespace {

ClockWatch::Options Stages(int stages, std::function<std::optional<absl::Duration>(int)> ask) {
  ClockWatch::Options options;
  options.stages = stages;
  options.ask = std::move(ask);
  options.exchanges = 3;
  options.period = absl::InfiniteDuration();
  return options;
}

TEST(ClockWatch, AsksEveryStageAtTheStartAndOnceMoreAtTheEnd) {
  std::atomic<int> asked[2] = {0, 0};
  ClockWatch watch(Stages(2,
                          [&](int stage) {
                            ++asked[stage];
                            return Clock::Real().Now() - absl::Seconds(1000 * (stage + 1));
                          }),
                   Clock::Real());
  watch.Finish();
  watch.Wait();
  const std::vector<ClockModel> models = watch.models();
  ASSERT_EQ(models.size(), 2u);
  for (int s : {0, 1}) {
    ASSERT_TRUE(models[s].known());
    const absl::Duration now = Clock::Real().Now();
    const absl::Duration error = models[s].ToLocal(now - absl::Seconds(1000 * (s + 1))) - now;
    EXPECT_LE(absl::AbsDuration(error), models[s].error_bound());
    // Finish may have come before the first round.
    EXPECT_TRUE(asked[s] == 3 || asked[s] == 6) << asked[s];
  }
  EXPECT_LE(watch.known_until(), Clock::Real().Now());
}

TEST(ClockWatch, AsksAgainWhenThePeriodIsOver) {
  std::atomic<int> asked = 0;
  ClockWatch::Options options = Stages(1, [&](int) {
    ++asked;
    return Clock::Real().Now();
  });
  options.period = absl::Milliseconds(1);
  ClockWatch watch(options, Clock::Real());
  const absl::Duration start = Clock::Real().Now();
  while (watch.known_until() < start + absl::Milliseconds(5)) std::this_thread::yield();
  EXPECT_GT(asked, 3);
}

TEST(ClockWatch, WhoIsNoLongerWantedAsksNobodyElse) {
  std::atomic<int> asked = 0;
  std::atomic<bool> go = false;
  auto watch = std::make_unique<ClockWatch>(Stages(100,
                                                   [&](int) -> std::optional<absl::Duration> {
                                                     ++asked;
                                                     while (!go) std::this_thread::yield();
                                                     return std::nullopt;
                                                   }),
                                            Clock::Real());
  while (asked == 0) std::this_thread::yield();
  std::thread end([&] { watch.reset(); });
  // The destructor is on its way, or about to be: a round of all stages twice over would be 600 questions.
  go = true;
  end.join();
  EXPECT_LT(asked, 600);
}

TEST(ClockWatch, AStageThatIsLostDoesNotHideTheOthers) {
  ClockWatch watch(Stages(2,
                          [&](int stage) -> std::optional<absl::Duration> {
                            if (stage == 0) return std::nullopt;
                            return Clock::Real().Now();
                          }),
                   Clock::Real());
  watch.Finish();
  watch.Wait();
  EXPECT_FALSE(watch.models()[0].known());
  EXPECT_TRUE(watch.models()[1].known());
  EXPECT_EQ(watch.known_until(), -absl::InfiniteDuration());
}

}  // namespace
}  // namespace resbm::coordinator
