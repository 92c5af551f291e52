#include "coordinator/report/trace_recorder.h"

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "proto/base/clock.h"
#include "tests/support/temp_files.h"
#include "tests/coordinator/report/spans.h"

namespace resbm::coordinator {
namespace {

using nlohmann::json;
using resbm::testing::ReadFile;
using resbm::testing::TempDirectory;

// Goes on only when told to, for any thread.
class ManualClock : public Clock {
 public:
  absl::Duration Now() const override { return absl::Nanoseconds(nanos_.load()); }
  void Advance(absl::Duration by) { nanos_ += absl::ToInt64Nanoseconds(by); }

 private:
  std::atomic<std::int64_t> nanos_ = 1000000000;
};

class TraceRecorderTest : public ::testing::Test {
 protected:
  TraceRecorder::Options OptionsFor(std::int64_t steps) {
    TraceRecorder::Options options;
    options.path = folder_ / "trace.json";
    options.addresses = {"a:1", "b:2"};
    options.steps = steps;
    options.ask_clock = [this](int stage) { return TheirTime(stage, clock_.Now()); };
    return options;
  }
  static absl::Duration TheirTime(int stage, absl::Duration ours) { return ours + absl::Seconds(1000 * (stage + 1)); }

  // A step of 2 ms, with one forward of 1 ms on each stage.
  absl::Status Step(TraceRecorder* recorder, std::int64_t step) {
    const absl::Duration began = clock_.Now();
    clock_.Advance(absl::Milliseconds(2));
    std::vector<v1::Computed> computed(2);
    for (int s : {0, 1}) {
      *computed[s].add_spans() =
          SpanOf(v1::Span::FORWARD, v1::LOCAL, 0, TheirTime(s, began + absl::Microseconds(500)), absl::Milliseconds(1));
    }
    return recorder->OnStep(step, clock_.Now(), absl::Milliseconds(2), computed);
  }
  json Read() const { return json::parse(ReadFile(folder_ / "trace.json")); }
  int Count(const std::string& name) const {
    int count = 0;
    const json trace = Read();
    for (const json& event : trace["traceEvents"]) count += event["name"] == name;
    return count;
  }

  const TempDirectory folder_;
  ManualClock clock_;
};

TEST_F(TraceRecorderTest, WritesTheStepsThatWereAskedForAndSaysHowWellItKnowsTheClocks) {
  TraceRecorder recorder(OptionsFor(2), clock_);
  for (int step = 1; step <= 4; ++step) ASSERT_TRUE(Step(&recorder, step).ok());
  ASSERT_TRUE(recorder.Finish().ok());
  const json trace = Read();
  EXPECT_EQ(Count("step 1") + Count("step 2"), 2);
  EXPECT_EQ(Count("step 3"), 0);
  EXPECT_EQ(Count("F0"), 4);
  EXPECT_EQ(trace["displayTimeUnit"], "ms");
  EXPECT_EQ(trace["otherData"]["steps"], 2);
  EXPECT_EQ(trace["otherData"]["stages"], 2);
  ASSERT_EQ(trace["otherData"]["clock_error_us"].size(), 2u);
  EXPECT_EQ(trace["otherData"]["clock_error_us"][0], 0);
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const int step = event["args"]["step"];
    if (event["name"] == "F0") {
      EXPECT_EQ(event["ts"], 2000 * (step - 1) + 500);
      EXPECT_EQ(event["dur"], 1000);
    } else {
      EXPECT_EQ(event["ts"], 2000 * (step - 1));
      EXPECT_EQ(event["dur"], 2000);
    }
  }
}

TEST_F(TraceRecorderTest, WithoutStepsNobodyIsAskedAndNothingIsWritten) {
  TraceRecorder::Options options = OptionsFor(0);
  options.ask_clock = [](int) -> std::optional<absl::Duration> {
    ADD_FAILURE() << "asked";
    return std::nullopt;
  };
  TraceRecorder recorder(options, clock_);
  ASSERT_TRUE(Step(&recorder, 1).ok());
  ASSERT_TRUE(recorder.Finish().ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "trace.json"));
}

TEST_F(TraceRecorderTest, ARunThatEndsBeforeItsFirstStepLeavesNoFile) {
  TraceRecorder recorder(OptionsFor(-1), clock_);
  ASSERT_TRUE(recorder.Finish().ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "trace.json"));
}

TEST_F(TraceRecorderTest, TheFileIsReadableBeforeItsFirstStepIsInIt) {
  TraceRecorder recorder(OptionsFor(-1), clock_);
  ASSERT_TRUE(Step(&recorder, 1).ok());
  EXPECT_GT(Read()["traceEvents"].size(), 10u) << "names of processes and threads";
}

TEST_F(TraceRecorderTest, WhatIsHeldIsBoundedThoughAClockIsNeverKnown) {
  TraceRecorder::Options options = OptionsFor(-1);
  options.most_held = 10;
  options.ask_clock = [this](int stage) -> std::optional<absl::Duration> {
    if (stage == 1) return std::nullopt;
    return TheirTime(stage, clock_.Now());
  };
  TraceRecorder recorder(options, clock_);
  for (int step = 1; step <= 5; ++step) ASSERT_TRUE(Step(&recorder, step).ok());
  EXPECT_EQ(Count("step 1"), 0) << "held: 10 spans";
  ASSERT_TRUE(Step(&recorder, 6).ok());
  EXPECT_EQ(Count("step 1"), 1);
  EXPECT_EQ(Count("step 6"), 1);
  ASSERT_TRUE(recorder.Finish().ok());
  const json trace = Read();
  EXPECT_TRUE(trace["otherData"]["clock_error_us"][1].is_null());
}

TEST_F(TraceRecorderTest, OfAStageThatSaysTooMuchOnlyTheBeginningIsKept) {
  TraceRecorder recorder(OptionsFor(1), clock_);
  std::vector<v1::Computed> computed(2);
  for (int i = 0; i < 20000; ++i) {
    *computed[1].add_spans() = SpanOf(v1::Span::FORWARD, v1::LOCAL, 0, TheirTime(1, clock_.Now()), absl::ZeroDuration());
  }
  ASSERT_TRUE(recorder.OnStep(1, clock_.Now(), absl::Milliseconds(2), computed).ok());
  ASSERT_TRUE(recorder.Finish().ok());
  EXPECT_EQ(Count("F0"), 16385);
}

TEST_F(TraceRecorderTest, AfterAnErrorItStaysQuiet) {
  TraceRecorder::Options options = OptionsFor(-1);
  options.path = folder_ / "nowhere/trace.json";
  TraceRecorder recorder(options, clock_);
  EXPECT_FALSE(Step(&recorder, 1).ok());
  EXPECT_TRUE(Step(&recorder, 2).ok());
  EXPECT_TRUE(recorder.Finish().ok());
}

}  // namespace
}  // namespace resbm::coordinator
