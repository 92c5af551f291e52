#include "coordinator/report/progress.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class ProgressTest : public ::testing::Test {
 protected:
  Progress Make(bool interactive, bool quiet = false, int columns = 120) {
    Progress::Options options;
    options.terminal.interactive = interactive;
    options.terminal.columns = columns;
    options.quiet = quiet;
    options.total_steps = 1000;
    return Progress(options, &clock_, [this](absl::string_view text) { written_.emplace_back(text); });
  }

  // `steps` steps of 10 samples, 20 ms each.
  void Run(Progress& progress, int steps) {
    for (int i = 0; i < steps; ++i) {
      clock_.Advance(absl::Milliseconds(20));
      state_.step += 1;
      state_.units += 10;
      progress.Update(state_);
    }
  }

  FakeClock clock_;
  Progress::State state_{0, 1, 0.43217, 0, 0.118};
  std::vector<std::string> written_;
};

TEST_F(ProgressTest, APipeGetsPlainLinesFirstEveryFiveSecondsAndLast) {
  Progress progress = Make(false);
  Run(progress, 1);
  EXPECT_THAT(written_, ElementsAre("step 1/1000  epoch 2  loss 0.4322  500.0 samples/s  waiting 12%  0:20 left\n"));
  Run(progress, 249);
  EXPECT_THAT(written_, SizeIs(1));
  Run(progress, 1);
  ASSERT_THAT(written_, SizeIs(2));
  EXPECT_EQ(written_[1], "step 251/1000  epoch 2  loss 0.4322  500.0 samples/s  waiting 12%  0:15 left\n");
  Run(progress, 749);
  EXPECT_THAT(written_, SizeIs(4));
  progress.Finish();
  ASSERT_THAT(written_, SizeIs(5));
  EXPECT_EQ(written_[4], "step 1000/1000  epoch 2  loss 0.4322  500.0 samples/s  waiting 12%  0:00 left\n");
}

TEST_F(ProgressTest, TheUnitOfTheRateIsAnOption) {
  Progress::Options options;
  options.unit = "tokens";
  Progress progress(options, &clock_, [this](absl::string_view text) { written_.emplace_back(text); });
  Run(progress, 1);
  EXPECT_THAT(written_, ElementsAre("step 1  epoch 2  loss 0.4322  500.0 tokens/s  waiting 12%\n"));
}

TEST_F(ProgressTest, FinishDrawsNothingTwice) {
  Progress progress = Make(false);
  Run(progress, 1);
  progress.Finish();
  progress.Finish();
  EXPECT_THAT(written_, SizeIs(1));
}

TEST_F(ProgressTest, ATerminalIsRedrawnAtMostTenTimesASecond) {
  Progress progress = Make(true);
  Run(progress, 500);  // 10 s
  EXPECT_THAT(written_, SizeIs(100));
  for (const std::string& text : written_) {
    EXPECT_THAT(text, StartsWith("\r\x1b[K["));
    EXPECT_THAT(text, Not(HasSubstr("\n")));
  }
  EXPECT_THAT(written_.back(), HasSubstr("[###########.............] step 496/1000  epoch 2  loss 0.4322"));
  progress.Finish();
  ASSERT_THAT(written_, SizeIs(102));
  EXPECT_THAT(written_[100], HasSubstr("step 500/1000"));
  EXPECT_EQ(written_[101], "\n");
}

TEST_F(ProgressTest, ANoteStandsAboveTheBar) {
  Progress progress = Make(true);
  Run(progress, 1);
  progress.Note("epoch 1: top-1 85.3 %");
  ASSERT_THAT(written_, SizeIs(3));
  EXPECT_EQ(written_[1], "\r\x1b[Kepoch 1: top-1 85.3 %\n");
  EXPECT_EQ(written_[2], written_[0]);
}

TEST_F(ProgressTest, ANoteInAPipeIsALine) {
  Progress progress = Make(false);
  progress.Note("hello");
  EXPECT_THAT(written_, ElementsAre("hello\n"));
}

TEST_F(ProgressTest, ALineNeverFillsTheTerminal) {
  for (int columns : {1, 10, 40, 79, 80, 100, 101, 102, 103, 104, 120}) {
    written_.clear();
    Progress progress = Make(true, false, columns);
    Run(progress, 1);
    ASSERT_THAT(written_, SizeIs(1));
    EXPECT_LE(written_[0].size(), columns + std::string("\r\x1b[K").size() - (columns > 1 ? 1 : 0)) << columns;
  }
}

TEST_F(ProgressTest, QuietIsQuiet) {
  Progress progress = Make(true, true);
  Run(progress, 100);
  progress.Note("hello");
  progress.Finish();
  EXPECT_THAT(written_, IsEmpty());
}

TEST_F(ProgressTest, TheRateIsThatOfTheLastTenSeconds) {
  Progress progress = Make(false);
  Run(progress, 1);
  for (int i = 0; i < 12; ++i) {  // a second each now
    clock_.Advance(absl::Seconds(1));
    ++state_.step;
    state_.units += 10;
    progress.Update(state_);
  }
  EXPECT_THAT(written_.back(), HasSubstr("  10.0 samples/s"));
}

TEST_F(ProgressTest, AResumedRunCountsOnlyItsOwnStepsForTheTimeLeft) {
  Progress::Options options;
  options.total_steps = 1000;
  options.first_step = 900;
  Progress progress(options, &clock_, [this](absl::string_view text) { written_.emplace_back(text); });
  clock_.Advance(absl::Seconds(10));
  progress.Update({910, 0, 1, 100, 0});
  ASSERT_THAT(written_, SizeIs(1));
  EXPECT_THAT(written_[0], EndsWith("  1:30 left\n"));
}

TEST_F(ProgressTest, WithoutATotalThereIsNoTimeLeft) {
  Progress progress({}, &clock_, [this](absl::string_view text) { written_.emplace_back(text); });
  Run(progress, 1);
  EXPECT_THAT(written_, ElementsAre("step 1  epoch 2  loss 0.4322  500.0 samples/s  waiting 12%\n"));
}

}  // namespace
}  // namespace resbm::coordinator
