#include "coordinator/plan/simulate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

using ::testing::HasSubstr;
using Kind = Action::Kind;

Program Parse(const std::string& text) {
  Program program;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    program.push_back({word[0] == 'F' ? Kind::kForward : Kind::kBackward, std::stoi(std::string(word.substr(1)))});
  }
  return program;
}

std::vector<Program> Parse(const std::vector<std::string>& texts) {
  std::vector<Program> programs;
  for (const std::string& text : texts) programs.push_back(Parse(text));
  return programs;
}

std::vector<Program> Programs(v1::Schedule::Kind kind, int stages, int micro_batches) {
  return TrainingPrograms(micro_batches, *ResolveWindows(kind, stages, micro_batches, {}));
}

TEST(Simulate, EveryScheduleEnds) {
  for (auto kind : {v1::Schedule::ONE_F_ONE_B, v1::Schedule::GPIPE}) {
    for (int stages = 1; stages <= 8; ++stages) {
      for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
        EXPECT_TRUE(CheckPrograms(Programs(kind, stages, micro_batches)).ok()) << stages << " " << micro_batches;
        EXPECT_TRUE(CheckPrograms(EvaluationPrograms(stages, micro_batches)).ok());
      }
    }
  }
}

TEST(Simulate, WindowsThatGrowDownstreamHang) {
  const absl::Status status = CheckPrograms(TrainingPrograms(6, {1, 2, 1}));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("stage 0 waits at B0 for stage 1"));
  EXPECT_THAT(status.message(), HasSubstr("stage 1 waits at F1 for stage 0"));
  EXPECT_THAT(status.message(), HasSubstr("schedule.windows"));
  EXPECT_FALSE(CheckPrograms(TrainingPrograms(6, {2, 3, 1})).ok());
  EXPECT_TRUE(CheckPrograms(TrainingPrograms(6, {2, 2, 1})).ok());
}

TEST(Simulate, ProgramsThatAreNotAScheduleAreRefused) {
  const struct {
    std::vector<std::string> programs;
    const char* message;
  } cases[] = {
      {{}, "no programs"},
      {{"F0 F0 B0"}, "F0 twice"},
      {{"F0 B1"}, "B1 with 1 micro-batches"},
      {{"F0 F1 B1 B0"}, "B1 where B0 must come"},
      {{"B0 F0"}, "B0 before F0"},
      {{"F0 F1 B0"}, "1 backwards for 2 micro-batches"},
      {{"F0 F1 B0 B1", "F1 F0 B0 B1"}, "program of stage 1: forwards in another order"},
      {{"F0 F1 B0 B1", "F0 B0"}, "program of stage 1: forwards in another order"},
      {{"F0 F1", "F0 F1 B0 B1"}, "2 backwards for 2 forwards of an evaluation"},
      {{"F-1 B-1"}, "F-1 with 1 micro-batches"},
  };
  for (const auto& test : cases) {
    const absl::Status status = CheckPrograms(Parse(test.programs));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << test.message;
    EXPECT_THAT(status.message(), HasSubstr(test.message));
  }
}

// 1F1B without hops: makespan (M + P - 1)(tF + tB), bubble (P - 1) / (M + P - 1).
TEST(Simulate, TheBubbleIsTheKnownOne) {
  for (auto kind : {v1::Schedule::ONE_F_ONE_B, v1::Schedule::GPIPE}) {
    const auto result = Simulate(Programs(kind, 4, 8), FixedTiming({1, 1, 1, 1}, {2, 2, 2, 2}, 0));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_DOUBLE_EQ(result->makespan_seconds, 33);
    EXPECT_DOUBLE_EQ(result->bubble_share, 3.0 / 11);
    EXPECT_DOUBLE_EQ(result->stages[2].busy_seconds, 24);
  }
}

TEST(Simulate, OneMicroBatchGoesDownAndUpOnce) {
  // F0 1, hop, F0 2, hop, F0 3, B0 30, hop, B0 20, hop, B0 10.
  const auto result = Simulate(Programs(v1::Schedule::GPIPE, 3, 1), FixedTiming({1, 2, 3}, {10, 20, 30}, 0.5));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_DOUBLE_EQ(result->makespan_seconds, 66 + 4 * 0.5);
  EXPECT_DOUBLE_EQ(result->stages[2].end_seconds, 1 + 0.5 + 2 + 0.5 + 3 + 30);
  EXPECT_DOUBLE_EQ(result->bubble_share, 1 - 66 / (3 * 68.0));
}

TEST(Simulate, AStageHoldsNoMoreThanItsWindow) {
  const std::vector<int> windows = {5, 3, 3, 1};
  const auto result = Simulate(TrainingPrograms(12, windows), FixedTiming({1, 1, 1, 1}, {2, 2, 2, 2}, 0.7));
  ASSERT_TRUE(result.ok()) << result.status();
  for (int s = 0; s < 4; ++s) EXPECT_EQ(result->stages[s].most_in_flight, windows[s]);
}

// An independent model of 3 stages and 6 micro-batches with tF = 1, tB = 2 gave these makespans.
TEST(Simulate, NarrowWindowsCostTime) {
  const struct {
    std::vector<int> windows;
    double makespan;
  } cases[] = {{{3, 2, 1}, 24}, {{2, 2, 1}, 36}, {{3, 2, 2}, 36}, {{1, 1, 1}, 54}};
  for (const auto& test : cases) {
    const auto result = Simulate(TrainingPrograms(6, test.windows), FixedTiming({1, 1, 1}, {2, 2, 2}, 0));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_DOUBLE_EQ(result->makespan_seconds, test.makespan);
  }
}

// The figures of protocol.md, section 6: 4 stages of 50 + 100 ms, hops of 50 ms, M = 256.
TEST(Simulate, SuggestedWindowsHideTheHop) {
  const double forward = 0.05, backward = 0.1, hop = 0.05;
  std::vector<int> suggested, without_last_term;
  for (int s = 0; s < 4; ++s) {
    suggested.push_back(SuggestedWindow(s, 4, 256, forward, backward, hop));
    without_last_term.push_back(suggested.back() - (3 - s));
  }
  EXPECT_EQ(suggested, (std::vector<int>{9, 7, 4, 1}));
  const SimulationTiming timing =
      FixedTiming(std::vector<double>(4, forward), std::vector<double>(4, backward), hop);
  const double ideal = 256 * (forward + backward);
  const auto deep = Simulate(TrainingPrograms(256, suggested), timing);
  const auto shallow = Simulate(TrainingPrograms(256, without_last_term), timing);
  ASSERT_TRUE(deep.ok() && shallow.ok());
  EXPECT_NEAR(ideal / deep->makespan_seconds, 0.981, 0.0005);
  EXPECT_NEAR(ideal / shallow->makespan_seconds, 0.745, 0.0005);
}

TEST(Simulate, SuggestedWindowIsOneForTheLastStageAndAtMostM) {
  EXPECT_EQ(SuggestedWindow(3, 4, 64, 0.01, 0.02, 0.05), 1);
  EXPECT_EQ(SuggestedWindow(0, 1, 64, 0.01, 0.02, 0.05), 1);
  EXPECT_EQ(SuggestedWindow(0, 4, 8, 0.01, 0.02, 0.05), 8);
  EXPECT_EQ(SuggestedWindow(0, 4, 8, 0, 0, 0.05), 8);
  EXPECT_EQ(SuggestedWindow(0, 4, 8, 1e-300, 0, 1e300), 8);
  // 2 * 0.05 * 3 / 0.03 is 10, but for rounding.
  EXPECT_EQ(SuggestedWindow(0, 4, 64, 0.01, 0.02, 0.05), 17);
  // Without a hop: P-s and one more per stage below.
  EXPECT_EQ(SuggestedWindow(1, 4, 64, 0.01, 0.02, 0), 5);
}

// Whatever comes first: at each turn either a stage takes its next action or one link delivers its oldest
// tensor, by chance. Knows nothing of the simulator.
class AnyOrder {
 public:
  AnyOrder(const std::vector<Program>& programs, unsigned seed)
      : programs_(programs), random_(seed), next_(programs.size(), 0), down_(programs.size()), up_(programs.size()),
        in_(programs.size()) {}

  // True when all programs ended.
  bool Run() {
    for (;;) {
      std::vector<std::pair<int, int>> possible;  // what, stage
      for (int s = 0; s < stages(); ++s) {
        if (CanRun(s)) possible.push_back({0, s});
        if (!down_[s].empty()) possible.push_back({1, s});
        if (!up_[s].empty()) possible.push_back({2, s});
      }
      if (possible.empty()) break;
      const auto [what, s] = possible[random_() % possible.size()];
      if (what == 0) {
        RunOne(s);
      } else {
        std::deque<Action>& link = what == 1 ? down_[s] : up_[s];
        in_[s].push_back(link.front());
        link.pop_front();
        most_waiting_[{what, s}] = std::max(most_waiting_[{what, s}], Waiting(s, link_kind(what)));
      }
    }
    for (int s = 0; s < stages(); ++s) {
      if (next_[s] < programs_[s].size()) return false;
    }
    return true;
  }

  // Most forwards that were waiting at stage s.
  int MostWaiting(int s) { return most_waiting_[{1, s}]; }

 private:
  int stages() const { return static_cast<int>(programs_.size()); }
  static Kind link_kind(int what) { return what == 1 ? Kind::kForward : Kind::kBackward; }
  int Waiting(int s, Kind kind) const {
    return static_cast<int>(
        std::count_if(in_[s].begin(), in_[s].end(), [kind](const Action& a) { return a.kind == kind; }));
  }
  bool Outer(int s, const Action& action) const {
    return action.kind == Kind::kForward ? s == 0 : s == stages() - 1;
  }
  bool CanRun(int s) const {
    if (next_[s] == programs_[s].size()) return false;
    const Action& action = programs_[s][next_[s]];
    return Outer(s, action) || std::find(in_[s].begin(), in_[s].end(), action) != in_[s].end();
  }
  void RunOne(int s) {
    const Action action = programs_[s][next_[s]++];
    if (!Outer(s, action)) in_[s].erase(std::find(in_[s].begin(), in_[s].end(), action));
    if (action.kind == Kind::kForward && s + 1 < stages()) down_[s + 1].push_back(action);
    if (action.kind == Kind::kBackward && s > 0) up_[s - 1].push_back(action);
  }

  const std::vector<Program>& programs_;
  std::mt19937 random_;
  std::vector<std::size_t> next_;
  std::vector<std::deque<Action>> down_, up_;  // towards stage s
  std::vector<std::vector<Action>> in_;
  std::map<std::pair<int, int>, int> most_waiting_;
};

// Invariant 13 of protocol.md: what CheckPrograms accepts ends at any arrival timing, what it calls hung
// does not end at any. No stage is ever sent more than its upstream neighbour's window.
TEST(Simulate, AcceptedProgramsEndAtAnyArrivalTiming) {
  std::mt19937 random(7);
  int accepted = 0, hung = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const int stages = 1 + random() % 4;
    const int micro_batches = 1 + random() % 7;
    std::vector<int> windows(stages);
    for (int& window : windows) window = 1 + random() % micro_batches;
    const std::vector<Program> programs = TrainingPrograms(micro_batches, windows);
    const absl::Status status = CheckPrograms(programs);
    AnyOrder run(programs, trial);
    EXPECT_EQ(run.Run(), status.ok()) << trial << ": " << status;
    ++(status.ok() ? accepted : hung);
    for (int s = 1; s < stages; ++s) EXPECT_LE(run.MostWaiting(s), windows[s - 1]) << trial;
    std::vector<double> seconds(8 * 8 * 4);
    for (double& s : seconds) s = (random() % 1000) / 100.0;
    auto at = [&](int s, const Action& a) {
      return seconds[(a.kind == Kind::kForward ? 0 : 128) + 8 * s + a.micro_batch];
    };
    auto hop = [&](int s, const Action& a) { return 3 * at(s, {a.kind, a.micro_batch}) + 1; };
    EXPECT_EQ(Simulate(programs, {at, hop}).ok(), status.ok()) << trial;
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(hung, 300);
}

TEST(Simulate, ResolvedWindowsAreAlwaysAccepted) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 1000; ++trial) {
    const int stages = 1 + random() % 6;
    const int micro_batches = 1 + random() % 9;
    std::vector<int> windows(stages);
    for (int& window : windows) window = 1 + random() % 12;
    const auto resolved = ResolveWindows(v1::Schedule::ONE_F_ONE_B, stages, micro_batches, windows);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    const std::vector<Program> programs = TrainingPrograms(micro_batches, *resolved);
    EXPECT_TRUE(CheckPrograms(programs).ok());
    EXPECT_TRUE(AnyOrder(programs, trial).Run());
  }
}

}  // namespace
}  // namespace resbm::coordinator
