// A stage that is watched while it works: Describe, Snapshot, its log. For ThreadSanitizer above all.
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "proto/base/mutex.h"
#include "stage_server/host/stage.h"
#include "stage_server/metrics/stage_families.h"
#include "tests/stage_server/host/pipeline.h"

namespace resbm::stage_server::testing {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

class Notes {
 public:
  LogFunction function() {
    return [this](const LogEvent& event) {
      MutexLock lock(mutex_);
      events_.push_back(event);
      changed_.NotifyAll();
    };
  }
  // The first of that name, of that link if it is one; waits for it.
  std::optional<LogEvent> Find(const std::string& name, int link = 1) {
    const absl::Duration deadline = Clock::Real().Now() + kLong;
    MutexLock lock(mutex_);
    for (;;) {
      for (const LogEvent& event : events_) {
        if (event.name == name && event.fields.value("link", link) == link) return event;
      }
      const absl::Duration left = deadline - Clock::Real().Now();
      if (left <= absl::ZeroDuration()) return std::nullopt;
      changed_.WaitFor(mutex_, left);
    }
  }
  // In which order they came.
  std::size_t PlaceOf(const std::string& name) {
    MutexLock lock(mutex_);
    std::size_t place = 0;
    while (place < events_.size() && events_[place].name != name) ++place;
    return place;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<LogEvent> events_ RESBM_GUARDED_BY(mutex_);
};

void Release(Pipeline* pipeline, std::uint32_t stage) {
  v1::ControlRequest request;
  request.mutable_release();
  pipeline->Send(stage, request);
  ASSERT_TRUE(pipeline->sink(stage).WaitForEnd().has_value());
}

TEST(Watch, ScrapesWhileItTrainsSeeCountersThatOnlyGrow) {
  Pipeline pipeline(/*break_every=*/5);
  std::atomic<bool> over = false;
  std::vector<std::thread> watchers;
  for (std::uint32_t s = 0; s < Pipeline::kStages; ++s) {
    watchers.emplace_back([&, s] {
      std::uint64_t bytes = 0, steps = 0;
      do {
        const std::optional<StageSnapshot> snapshot = pipeline.stage(s).Snapshot(kLong);
        ASSERT_TRUE(snapshot.has_value());
        const LinkTotals& link = snapshot->links[s == 0 ? 1 : 0];
        EXPECT_GE(link.payload_bytes_sent, bytes);
        EXPECT_GE(snapshot->counters.applied_steps, steps);
        EXPECT_FALSE(StageFamilies(v1::DescribeReply(), &*snapshot).empty());
        bytes = link.payload_bytes_sent;
        steps = snapshot->counters.applied_steps;
      } while (!over);
    });
  }
  pipeline.Train(5);
  over = true;
  for (std::thread& watcher : watchers) watcher.join();
  const std::optional<StageSnapshot> after = pipeline.stage(0).Snapshot(kLong);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->counters.applied_steps, 5u);
  EXPECT_EQ(after->totals.step_seconds.Read().sample_count, 5u);
  EXPECT_GT(after->links[1].reconnections, 0u);
  EXPECT_GT(after->links[1].payload_bytes_sent, 0u);
  EXPECT_EQ(after->now.up().connected(), true);
}

TEST(Watch, WhatAClosedFenceHasSentStaysCounted) {
  Pipeline pipeline;
  pipeline.Train(2);
  const std::uint64_t sent = pipeline.stage(0).Snapshot(kLong)->links[1].payload_bytes_sent;
  EXPECT_GT(sent, 0u);
  Release(&pipeline, 0);
  const std::optional<StageSnapshot> free = pipeline.stage(0).Snapshot(kLong);
  EXPECT_GE(free->links[1].payload_bytes_sent, sent);
  EXPECT_EQ(free->counters.applied_steps, 2u);
  EXPECT_FALSE(free->now.has_up());
  EXPECT_FALSE(free->memory_plan.has_value());
}

TEST(Watch, DescribeSaysWhereItIsAndHowItsLinksAre) {
  Pipeline pipeline;
  pipeline.Train(2);
  v1::DescribeReply reply;
  std::atomic<bool> described = false;
  pipeline.stage(1).Describe([&](v1::DescribeReply now) {
    reply = std::move(now);
    described = true;
  });
  while (!described) std::this_thread::yield();
  EXPECT_EQ(reply.job_id(), "job-a");
  EXPECT_EQ(reply.stage(), 1u);
  EXPECT_EQ(reply.stages(), 2u);
  EXPECT_EQ(reply.step(), 2u);
  EXPECT_EQ(reply.state(), "READY");
  EXPECT_TRUE(reply.up().connected());
  EXPECT_EQ(reply.up().connections(), 1u);
  EXPECT_GT(reply.up().received_bytes(), 0u);
  EXPECT_GT(reply.up().sent_bytes(), 0u);
  EXPECT_GT(reply.uptime_seconds(), 0);
  EXPECT_GT(reply.clock_nanos(), 0);
}

TEST(Watch, AHealthyEndOfARunIsNoWarning) {
  Notes notes;
  Pipeline pipeline(0, notes.function());
  pipeline.Train(1);
  // As at the end of every run: the neighbour is released first, and takes the link with it.
  Release(&pipeline, 0);
  Release(&pipeline, 1);
  const std::optional<LogEvent> released = notes.Find("released");
  ASSERT_TRUE(released.has_value());
  EXPECT_EQ(released->fields["job"], "job-a");
  EXPECT_EQ(released->fields["stage"], 1);
  EXPECT_EQ(released->fields["fence"], "1.1");
  EXPECT_EQ(released->fields["step"], 1);
  const std::optional<LogEvent> lost = notes.Find("link_disconnected");
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->level, LogLevel::kInfo);
  EXPECT_EQ(lost->fields["link"], 1);
  EXPECT_LT(notes.PlaceOf("link_disconnected"), notes.PlaceOf("released"));
}

TEST(Watch, ALinkThatBreaksInTheMiddleOfAStepIsAWarning) {
  Notes notes;
  Pipeline pipeline(0, notes.function());
  pipeline.AttachAll(1);
  pipeline.ResumeAll(100, 0, /*keep=*/false);
  pipeline.BeginAll(1, 100, /*fed=*/0);
  ASSERT_TRUE(notes.Find("link_connected").has_value());
  ASSERT_TRUE(pipeline.sink(1).WaitForProgress([](const v1::Progress&) { return true; }).has_value());
  Release(&pipeline, 0);
  const std::optional<LogEvent> lost = notes.Find("link_disconnected");
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->level, LogLevel::kWarning);
  EXPECT_NE(lost->fields["error"], "");
}

TEST(Watch, ALinkThatEndsBetweenStepsAndStaysAwayIsAWarning) {
  Notes notes;
  Pipeline pipeline(0, notes.function());
  pipeline.Train(1);
  Release(&pipeline, 0);  // and stage 1 is not
  const std::optional<LogEvent> lost = notes.Find("link_disconnected");
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->level, LogLevel::kWarning);
}

TEST(Watch, ReadinessIsToldWhenTheCoordinatorGoesAndAtTheEnd) {
  Mutex mutex;
  CondVar changed;
  std::vector<bool> told;
  Notes notes;
  Pipeline pipeline(0, notes.function(), [&](bool ready) {
    MutexLock lock(mutex);
    told.push_back(ready);
    changed.NotifyAll();
  });
  const auto wait_for = [&](std::vector<bool> expected) {
    const absl::Duration deadline = Clock::Real().Now() + kLong;
    MutexLock lock(mutex);
    while (told != expected && Clock::Real().Now() < deadline) changed.WaitFor(mutex, deadline - Clock::Real().Now());
    EXPECT_EQ(told, expected);
  };
  pipeline.Train(1);
  pipeline.stage(1).CloseSession(pipeline.session(1));
  wait_for({false});
  EXPECT_EQ(notes.Find("not_ready")->level, LogLevel::kWarning);
  EXPECT_FALSE(pipeline.stage(1).Snapshot(kLong)->ready);
  pipeline.AttachAll(2);
  wait_for({false, true});
  pipeline.stage(1).Shutdown(absl::UnavailableError("the server stops"));
  wait_for({false, true, false});
}

}  // namespace
}  // namespace resbm::stage_server::testing
