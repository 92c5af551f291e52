// Where another clock stands, from questions that take their time there and back.
#include "coordinator/run/clock_model.h"

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "proto/base/clock.h"

namespace resbm::coordinator {
namespace {

using absl::Microseconds;
using absl::Milliseconds;
using absl::Seconds;

// Another machine: its clock began at another time and runs faster by `drift`; delays there and back are random, and
// longer there by `asymmetry`.
class OtherMachine {
 public:
  OtherMachine(FakeClock* clock, absl::Duration ahead, double drift, absl::Duration asymmetry)
      : clock_(clock), ahead_(ahead), drift_(drift), asymmetry_(asymmetry) {}

  absl::Duration Now() const { return ahead_ + (1 + drift_) * clock_->Now(); }

  std::optional<absl::Duration> Ask() {
    clock_->Advance(Delay() + asymmetry_);
    const absl::Duration now = Now();
    clock_->Advance(Delay());
    return now;
  }
  std::vector<ClockExchange> Round(int exchanges = 8) {
    return AskForClock(*clock_, exchanges, [this] { return Ask(); });
  }

 private:
  // At least 100 us, mostly not much more, sometimes 20 ms.
  absl::Duration Delay() {
    const std::uint64_t random = random_();
    return Microseconds(100 + random % 50 + (random % 7 == 0 ? 20000 : 0));
  }

  FakeClock* const clock_;
  const absl::Duration ahead_;
  const double drift_;
  const absl::Duration asymmetry_;
  std::mt19937_64 random_;
};

TEST(ClockModel, FindsAClockThatBeganAtAnotherTimeToWithinHalfTheLeastRoundTrip) {
  FakeClock clock;
  OtherMachine other(&clock, Seconds(123456), 0, absl::ZeroDuration());
  ClockModel model;
  EXPECT_FALSE(model.known());
  model.AddRound(other.Round());
  ASSERT_TRUE(model.known());
  EXPECT_LT(model.error_bound(), Microseconds(150)) << "answers that took 20 ms do not count";
  EXPECT_GE(model.error_bound(), Microseconds(100));
  clock.Advance(Seconds(1));
  const absl::Duration error = model.ToLocal(other.Now()) - clock.Now();
  EXPECT_LE(absl::AbsDuration(error), model.error_bound());
}

TEST(ClockModel, AWayThereThatIsLongerThanTheWayBackShiftsItByNoMoreThanTheBound) {
  for (const absl::Duration asymmetry : {Microseconds(500), Milliseconds(30)}) {
    FakeClock clock;
    OtherMachine other(&clock, -Seconds(7), 0, asymmetry);
    ClockModel model;
    model.AddRound(other.Round());
    const absl::Duration error = model.ToLocal(other.Now()) - clock.Now();
    EXPECT_LE(absl::AbsDuration(error), model.error_bound());
    EXPECT_NEAR(absl::ToDoubleMicroseconds(absl::AbsDuration(error)), absl::ToDoubleMicroseconds(asymmetry) / 2, 30);
    EXPECT_GE(model.error_bound(), asymmetry / 2);
  }
}

TEST(ClockModel, ADriftIsFollowedBetweenRounds) {
  FakeClock clock;
  // 50 us a second: a minute without looking would be 3 ms.
  OtherMachine other(&clock, Seconds(99), 50e-6, absl::ZeroDuration());
  ClockModel model;
  std::vector<std::pair<absl::Duration, absl::Duration>> instants;  // theirs, ours
  for (int i = 0; i < 13; ++i) {
    model.AddRound(other.Round());
    for (int j = 0; j < 10; ++j) {
      clock.Advance(Milliseconds(500));
      if (i < 12) instants.emplace_back(other.Now(), clock.Now());
    }
  }
  EXPECT_EQ(model.rounds(), 13u);
  EXPECT_LT(model.error_bound(), Microseconds(150));
  absl::Duration last = -absl::InfiniteDuration();
  for (const auto& [theirs, ours] : instants) {
    const absl::Duration local = model.ToLocal(theirs);
    EXPECT_LE(absl::AbsDuration(local - ours), model.error_bound());
    EXPECT_GT(local, last) << "time does not go back";
    last = local;
  }
}

TEST(ClockModel, BeforeTheFirstAndAfterTheLastRoundTheOffsetStaysAsItIs) {
  ClockModel model;
  model.AddRound(std::vector<ClockExchange>{{Seconds(10), Seconds(110), Seconds(10)}});
  model.AddRound(std::vector<ClockExchange>{{Seconds(20), Seconds(120) + Milliseconds(1), Seconds(20)}});
  EXPECT_EQ(model.ToLocal(Seconds(100)), Seconds(0));
  EXPECT_EQ(model.ToLocal(Seconds(110)), Seconds(10));
  EXPECT_EQ(model.ToLocal(Seconds(130)), Seconds(30) - Milliseconds(1));
  EXPECT_EQ(model.known_until(), Seconds(20));
  EXPECT_EQ(model.error_bound(), absl::ZeroDuration());
}

TEST(ClockModel, ARoundThatTellsLessThanTheLastOneIsLeftOut) {
  ClockModel model;
  model.AddRound(std::vector<ClockExchange>{{Seconds(10), Seconds(110), Seconds(10) + Microseconds(200)}});
  EXPECT_EQ(model.error_bound(), Microseconds(100));
  // The machine is busy: 80 ms there, nothing back. At most 1 ms has drifted in 10 s.
  model.AddRound(
      std::vector<ClockExchange>{{Seconds(20), Seconds(120) + Milliseconds(80), Seconds(20) + Milliseconds(80)}});
  EXPECT_EQ(model.rounds(), 1u);
  EXPECT_EQ(model.known_until(), Seconds(20) + Milliseconds(80));
  EXPECT_EQ(model.ToLocal(Seconds(120)), Seconds(20) + Microseconds(100));
  EXPECT_GT(model.error_bound(), Milliseconds(1)) << "the drift that nobody saw";
  EXPECT_LT(model.error_bound(), Milliseconds(1.2));
}

TEST(ClockModel, RoundsThatFollowEachOtherCloselyDoNotStretchTime) {
  ClockModel model;
  model.AddRound(std::vector<ClockExchange>{{Seconds(10), Seconds(110), Seconds(10) + Microseconds(200)}});
  // A millisecond later, 60 us nearer to the truth.
  model.AddRound(std::vector<ClockExchange>{{Seconds(10) + Milliseconds(1), Seconds(110) + Milliseconds(1),
                                             Seconds(10) + Milliseconds(1) + Microseconds(80)}});
  EXPECT_EQ(model.rounds(), 1u);
  EXPECT_EQ(model.error_bound(), Microseconds(40));
  EXPECT_EQ(model.ToLocal(Seconds(110) + Microseconds(900)) - model.ToLocal(Seconds(110)), Microseconds(900));
  EXPECT_EQ(model.ToLocal(Seconds(110)), Seconds(10) + Microseconds(40));
}

TEST(ClockModel, AStageThatDoesNotAnswerLeavesItsClockUnknown) {
  FakeClock clock;
  int asked = 0;
  const auto silent = [&]() -> std::optional<absl::Duration> {
    ++asked;
    return std::nullopt;
  };
  ClockModel model;
  model.AddRound(AskForClock(clock, 8, silent));
  EXPECT_FALSE(model.known());
  EXPECT_EQ(model.known_until(), -absl::InfiniteDuration());
  EXPECT_EQ(asked, 1) << "it is not asked again at once";
}

TEST(ClockModel, ForgetsWhatIsVeryOld) {
  ClockModel model;
  for (int i = 0; i < 3000; ++i) {
    model.AddRound(std::vector<ClockExchange>{{Seconds(i), Seconds(i), Seconds(i)}});
  }
  EXPECT_EQ(model.rounds(), ClockModel::kMostRounds);
  EXPECT_EQ(model.ToLocal(Seconds(2999)), Seconds(2999));
}

}  // namespace
}  // namespace resbm::coordinator
