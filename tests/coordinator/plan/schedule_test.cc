#include "coordinator/plan/schedule.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Programs(v1::Schedule::Kind kind, int stages, int micro_batches,
                                  std::vector<int> windows = {}) {
  const auto resolved = ResolveWindows(kind, stages, micro_batches, windows);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  std::vector<std::string> text;
  if (!resolved.ok()) return text;
  for (const Program& program : TrainingPrograms(micro_batches, *resolved)) text.push_back(ToString(program));
  return text;
}

std::vector<int> Windows(v1::Schedule::Kind kind, int stages, int micro_batches, std::vector<int> windows = {}) {
  const auto resolved = ResolveWindows(kind, stages, micro_batches, windows);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return resolved.ok() ? *resolved : std::vector<int>();
}

// The program of a window of 1, 2, 3 and 4 for 1 to 6 micro-batches. A window of more than M is one of M.
const char* const kTable[6][4] = {
    {"F0 B0", "F0 B0", "F0 B0", "F0 B0"},
    {"F0 B0 F1 B1", "F0 F1 B0 B1", "F0 F1 B0 B1", "F0 F1 B0 B1"},
    {"F0 B0 F1 B1 F2 B2", "F0 F1 B0 F2 B1 B2", "F0 F1 F2 B0 B1 B2", "F0 F1 F2 B0 B1 B2"},
    {"F0 B0 F1 B1 F2 B2 F3 B3", "F0 F1 B0 F2 B1 F3 B2 B3", "F0 F1 F2 B0 F3 B1 B2 B3", "F0 F1 F2 F3 B0 B1 B2 B3"},
    {"F0 B0 F1 B1 F2 B2 F3 B3 F4 B4", "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4", "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4",
     "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4"},
    {"F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5", "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5",
     "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5", "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5"},
};

TEST(Schedule, OneForwardOneBackwardIsTheTable) {
  for (int stages = 1; stages <= 4; ++stages) {
    for (int micro_batches = 1; micro_batches <= 6; ++micro_batches) {
      std::vector<std::string> expected;
      for (int s = 0; s < stages; ++s) expected.push_back(kTable[micro_batches - 1][stages - s - 1]);
      EXPECT_EQ(Programs(v1::Schedule::ONE_F_ONE_B, stages, micro_batches), expected)
          << "P=" << stages << " M=" << micro_batches;
    }
  }
}

TEST(Schedule, GPipeIsTheTable) {
  const char* const table[6] = {
      "F0 B0",
      "F0 F1 B0 B1",
      "F0 F1 F2 B0 B1 B2",
      "F0 F1 F2 F3 B0 B1 B2 B3",
      "F0 F1 F2 F3 F4 B0 B1 B2 B3 B4",
      "F0 F1 F2 F3 F4 F5 B0 B1 B2 B3 B4 B5",
  };
  for (int stages = 1; stages <= 4; ++stages) {
    for (int micro_batches = 1; micro_batches <= 6; ++micro_batches) {
      EXPECT_EQ(Programs(v1::Schedule::GPIPE, stages, micro_batches),
                std::vector<std::string>(stages, table[micro_batches - 1]))
          << "P=" << stages << " M=" << micro_batches;
    }
  }
}

TEST(Schedule, DeeperWindowsSendMoreAhead) {
  EXPECT_THAT(Programs(v1::Schedule::ONE_F_ONE_B, 2, 6, {5, 2}),
              ElementsAre("F0 F1 F2 F3 F4 B0 F5 B1 B2 B3 B4 B5", "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5"));
}

TEST(Schedule, DefaultWindowsAreTheStagesBelowAndTheMicroBatches) {
  EXPECT_THAT(Windows(v1::Schedule::ONE_F_ONE_B, 4, 8), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(Windows(v1::Schedule::ONE_F_ONE_B, 4, 2), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(Windows(v1::Schedule::ONE_F_ONE_B, 1, 8), ElementsAre(1));
  EXPECT_THAT(Windows(v1::Schedule::GPIPE, 3, 5), ElementsAre(5, 5, 5));
}

TEST(Schedule, GivenWindowsAreClippedAndMadeNonIncreasing) {
  EXPECT_THAT(Windows(v1::Schedule::ONE_F_ONE_B, 3, 6, {1, 2, 1}), ElementsAre(1, 1, 1));
  EXPECT_THAT(Windows(v1::Schedule::ONE_F_ONE_B, 3, 4, {9, 7, 2}), ElementsAre(4, 4, 2));
  EXPECT_THAT(Windows(v1::Schedule::GPIPE, 3, 6, {4, 2, 3}), ElementsAre(4, 2, 2));
}

TEST(Schedule, WindowsThatMakeNoSenseAreRefused) {
  const auto count = ResolveWindows(v1::Schedule::ONE_F_ONE_B, 3, 6, {4, 2});
  EXPECT_EQ(count.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(count.status().message(), HasSubstr("2 windows for 3 stages"));
  const auto zero = ResolveWindows(v1::Schedule::ONE_F_ONE_B, 2, 6, {4, 0});
  EXPECT_EQ(zero.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(zero.status().message(), HasSubstr("0 at stage 1"));
  EXPECT_EQ(ResolveWindows(v1::Schedule::GPIPE, 0, 6, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ResolveWindows(v1::Schedule::GPIPE, 2, 0, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Schedule, EvaluationOnlyForwards) {
  const std::vector<Program> programs = EvaluationPrograms(3, 4);
  ASSERT_EQ(programs.size(), 3u);
  for (const Program& program : programs) EXPECT_EQ(ToString(program), "F0 F1 F2 F3");
}

}  // namespace
}  // namespace resbm::coordinator
