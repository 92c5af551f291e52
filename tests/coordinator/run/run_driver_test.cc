#include "coordinator/run/run_driver.h"

#include <deque>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resbm::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Stages that answer every request at once, unless a test steps in. Events wait in a queue until Run.
class Fleet : public RunDriver::Environment {
 public:
  explicit Fleet(int stages) : stages_(stages) {
    plan.job_id = "job";
    plan.coordinator_epoch = 4;
    plan.stages.resize(stages);
    plan.origin = "origin";
    plan.total_steps = 3;
    plan.step_shape = [](std::int64_t) { return StepShape{0, {2, 2}}; };
    plan.learning_rate = [](std::int64_t step) { return 0.1 * static_cast<double>(step); };
    plan.train_programs = plan.evaluation_programs = [stages](std::uint32_t) {
      return std::vector<v1::DefineProgram>(stages);
    };
  }

  RunDriver& Start() {
    driver = std::make_unique<RunDriver>(plan, &clock, this);
    driver->Start();
    return *driver;
  }

  void Run() {
    while (!events.empty()) {
      auto [stage, event] = std::move(events.front());
      events.pop_front();
      driver->OnEvent(stage, event);
    }
  }

  void Post(int stage, v1::ControlEvent event, const v1::Fence& fence) {
    *event.mutable_fence() = fence;
    events.emplace_back(stage, std::move(event));
  }

  void SendControl(int stage, const v1::ControlRequest& request) override {
    requests.emplace_back(stage, request);
    if (silent.count(stage) > 0) return;
    v1::ControlEvent event;
    switch (request.kind_case()) {
      case v1::ControlRequest::kAttach:
        event.mutable_attached()->set_protocol_version(1);
        break;
      case v1::ControlRequest::kResume:
        state_id[stage] = request.resume().state_id();
        event.mutable_ready()->set_state_id(state_id[stage]);
        break;
      case v1::ControlRequest::kBegin:
        Compute(stage, request.begin(), request.fence());
        return;
      case v1::ControlRequest::kCommit:
        state_id[stage] = request.commit().new_state_id();
        event.mutable_committed()->set_step(request.commit().attempt().step());
        event.mutable_committed()->set_state_id(state_id[stage]);
        Post(stage, event, request.fence());
        if (request.commit().has_next()) Compute(stage, request.commit().next(), request.fence());
        return;
      case v1::ControlRequest::kEvaluate:
        event.mutable_evaluated()->set_evaluation(request.evaluate().evaluation());
        if (stage == stages_ - 1) {
          event.mutable_evaluated()->set_weight(4);
          event.mutable_evaluated()->set_loss_sum(2);
          event.mutable_evaluated()->add_metric_sums(3);
        }
        break;
      default:
        return;
    }
    Post(stage, event, request.fence());
  }

  void Compute(int stage, const v1::Begin& begin, const v1::Fence& fence) {
    EXPECT_EQ(begin.base_state_id(), state_id[stage]);
    v1::ControlEvent event;
    v1::Computed& c = *event.mutable_computed();
    *c.mutable_attempt() = begin.attempt();
    c.set_base_state_id(begin.base_state_id());
    c.add_squared_norms(1);
    if (stage == stages_ - 1) c.set_loss_sum(8);
    if (poisoned.count({stage, begin.attempt().step()}) > 0) {
      c.add_non_finite()->set_where("gradient");
      c.mutable_non_finite(0)->set_count(1);
    }
    Post(stage, event, fence);
  }

  void UploadWeights(int stage, const v1::Fence&) override { uploads.push_back(stage); }
  void OpenFeed(const v1::Fence&) override { calls.push_back("open"); }
  void FeedStep(std::int64_t step, const StepShape&) override { calls.push_back("feed " + std::to_string(step)); }
  void FeedEvaluation(std::uint64_t) override { calls.push_back("feed evaluation"); }
  void ReleaseStep(std::int64_t step) override { calls.push_back("release " + std::to_string(step)); }
  void ReleaseEvaluation(std::uint64_t) override { calls.push_back("release evaluation"); }
  void OnStep(const StepReport& report) override { steps.push_back(report); }
  void OnEvaluation(const EvaluationReport& report) override { evaluations.push_back(report); }
  void OnProgress(int, const v1::Progress&) override {}

  int Count(v1::ControlRequest::KindCase kind) const {
    return static_cast<int>(std::count_if(requests.begin(), requests.end(),
                                          [&](const auto& r) { return r.second.kind_case() == kind; }));
  }

  FakeClock clock;
  RunPlan plan;
  std::unique_ptr<RunDriver> driver;
  std::deque<std::pair<int, v1::ControlEvent>> events;
  std::vector<std::pair<int, v1::ControlRequest>> requests;
  std::map<int, std::uint64_t> state_id;
  std::set<int> silent;
  std::set<std::pair<int, std::uint64_t>> poisoned;
  std::vector<std::string> calls;
  std::vector<int> uploads;
  std::vector<StepReport> steps;
  std::vector<EvaluationReport> evaluations;

 private:
  const int stages_;
};

TEST(RunDriver, TakesEveryStepOnceAndEndsDone) {
  Fleet fleet(3);
  fleet.Start();
  fleet.Run();
  EXPECT_TRUE(fleet.driver->finished());
  EXPECT_TRUE(fleet.driver->result().ok()) << fleet.driver->result();
  ASSERT_EQ(fleet.steps.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(fleet.steps[i].step, i + 1);
    EXPECT_DOUBLE_EQ(fleet.steps[i].decision.loss, 2);
    EXPECT_DOUBLE_EQ(fleet.steps[i].learning_rate, 0.1 * (i + 1));
    EXPECT_EQ(fleet.steps[i].fence.epoch(), 4u);
  }
  EXPECT_EQ(fleet.Count(v1::ControlRequest::kCommit), 9);
  EXPECT_EQ(fleet.Count(v1::ControlRequest::kBegin), 3);  // the rest was aboard of Commit
  for (const auto& [stage, id] : fleet.state_id) EXPECT_EQ(id, fleet.driver->state_id()) << stage;
}

TEST(RunDriver, FeedsAStepAheadAndNeverTwice) {
  Fleet fleet(2);
  fleet.Start();
  fleet.Run();
  EXPECT_THAT(fleet.calls, ElementsAre("open", "feed 1", "feed 2", "release 1", "feed 3", "release 2", "release 3"));
}

TEST(RunDriver, NothingIsFedAheadOfAnEvaluation) {
  Fleet fleet(2);
  fleet.plan.evaluation_micro_batches = {2, 2};
  fleet.plan.step_shape = [](std::int64_t step) { return StepShape{(step - 1) / 2, {2, 2}}; };
  fleet.Start();
  fleet.Run();
  EXPECT_THAT(fleet.calls, ElementsAre("open", "feed 1", "feed 2", "release 1", "release 2", "feed evaluation",
                                       "release evaluation", "feed 3", "release 3", "feed evaluation",
                                       "release evaluation"));
  ASSERT_EQ(fleet.evaluations.size(), 2u);
  EXPECT_EQ(fleet.evaluations[0].after_step, 2);
  EXPECT_EQ(fleet.evaluations[1].after_step, 3);
  EXPECT_DOUBLE_EQ(fleet.evaluations[1].loss, 0.5);
  EXPECT_DOUBLE_EQ(fleet.evaluations[1].top1, 0.75);
}

TEST(RunDriver, ARunWithoutStepsEvaluatesOnce) {
  Fleet fleet(2);
  fleet.plan.total_steps = 0;
  fleet.plan.evaluation_micro_batches = {4};
  fleet.plan.restore.resize(2);
  fleet.Start();
  fleet.Run();
  EXPECT_TRUE(fleet.driver->finished());
  EXPECT_EQ(fleet.evaluations.size(), 1u);
  EXPECT_THAT(fleet.uploads, ElementsAre(0, 1));
  EXPECT_THAT(fleet.steps, IsEmpty());
}

TEST(RunDriver, WhatIsWrongWithTheReadyStagesEndsTheRunBeforeItsFirstStep) {
  Fleet fleet(2);
  std::size_t asked = 0;
  fleet.plan.check_ready = [&](const std::vector<v1::Ready>& ready) {
    asked = ready.size();
    return absl::InvalidArgumentError("a tensor that is no parameter's");
  };
  fleet.Start();
  fleet.Run();
  EXPECT_EQ(asked, 2u);
  EXPECT_EQ(fleet.driver->result(), absl::InvalidArgumentError("a tensor that is no parameter's"));
  EXPECT_THAT(fleet.calls, IsEmpty());
  EXPECT_THAT(fleet.steps, IsEmpty());
}

TEST(RunDriver, ASkippedStepIsACommitToo) {
  Fleet fleet(2);
  fleet.poisoned = {{1, 2}};
  fleet.Start();
  fleet.Run();
  ASSERT_EQ(fleet.steps.size(), 3u);
  EXPECT_EQ(fleet.steps[0].decision.decision, v1::Commit::APPLY);
  EXPECT_EQ(fleet.steps[1].decision.decision, v1::Commit::SKIP);
  EXPECT_EQ(fleet.steps[2].decision.decision, v1::Commit::APPLY);
  int skips = 0;
  for (const auto& [stage, request] : fleet.requests) {
    if (request.has_commit() && request.commit().decision() == v1::Commit::SKIP) {
      ++skips;
      EXPECT_EQ(request.commit().attempt().step(), 2u);
    }
  }
  EXPECT_EQ(skips, 2);  // on all stages
}

TEST(RunDriver, NoCommitBeforeEveryStageHasComputed) {
  Fleet fleet(3);
  fleet.Start();
  while (fleet.Count(v1::ControlRequest::kBegin) == 0) {
    auto [stage, event] = fleet.events.front();
    fleet.events.pop_front();
    fleet.driver->OnEvent(stage, event);
  }
  ASSERT_EQ(fleet.events.size(), 3u);
  fleet.driver->OnEvent(0, fleet.events[0].second);
  fleet.driver->OnEvent(0, fleet.events[0].second);  // said twice
  fleet.driver->OnEvent(2, fleet.events[2].second);
  EXPECT_EQ(fleet.Count(v1::ControlRequest::kCommit), 0);
  fleet.driver->OnEvent(1, fleet.events[1].second);
  EXPECT_EQ(fleet.Count(v1::ControlRequest::kCommit), 3);
}

TEST(RunDriver, AStageThatDoesNotAnswerIsNamedByTheDeadline) {
  Fleet fleet(3);
  fleet.plan.timeouts.attach = absl::Seconds(1);
  fleet.silent = {2};
  fleet.Start();
  fleet.Run();
  EXPECT_EQ(fleet.driver->NextDeadline(), absl::Seconds(1));
  fleet.clock.Advance(absl::Milliseconds(999));
  fleet.driver->OnTimer();
  EXPECT_FALSE(fleet.driver->finished());
  fleet.clock.Advance(absl::Milliseconds(1));
  fleet.driver->OnTimer();
  EXPECT_TRUE(fleet.driver->finished());
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("stage 2"));
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("attach_seconds"));
}

TEST(RunDriver, AStalledStepBlamesTheSilentStage) {
  Fleet fleet(2);
  fleet.plan.timeouts.stall = absl::Seconds(20);
  fleet.Start();
  while (fleet.Count(v1::ControlRequest::kBegin) == 0) {
    auto [stage, event] = fleet.events.front();
    fleet.events.pop_front();
    fleet.driver->OnEvent(stage, event);
  }
  fleet.events.clear();
  fleet.clock.Advance(absl::Seconds(19));
  v1::ControlEvent progress;
  progress.mutable_progress()->mutable_waiting_for()->set_direction(v1::DOWN);
  progress.mutable_progress()->mutable_waiting_for()->set_link_connected(true);
  fleet.Post(0, progress, fleet.driver->fence());
  fleet.Run();
  fleet.clock.Advance(absl::Seconds(1));
  fleet.driver->OnTimer();
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("step 1"));
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("stage 1 holds it up"));
}

TEST(RunDriver, AStalledStepDoesNotBlameTheStagesThatHaveComputed) {
  Fleet fleet(3);
  fleet.plan.timeouts.stall = absl::Seconds(30);
  fleet.Start();
  while (fleet.Count(v1::ControlRequest::kBegin) == 0) {
    auto [stage, event] = fleet.events.front();
    fleet.events.pop_front();
    fleet.driver->OnEvent(stage, event);
  }
  ASSERT_EQ(fleet.events.size(), 3u);
  fleet.driver->OnEvent(1, fleet.events[1].second);
  fleet.driver->OnEvent(2, fleet.events[2].second);
  fleet.events.clear();
  // Stage 0 hangs in a computation, and says every second that it is there.
  for (int second = 1; second <= 30; ++second) {
    fleet.clock.Advance(absl::Seconds(1));
    v1::ControlEvent progress;
    progress.mutable_progress();
    fleet.Post(0, progress, fleet.driver->fence());
    fleet.Run();
    fleet.driver->OnTimer();
  }
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("stage 0 holds it up"));
}

TEST(RunDriver, ProgressOfAnyStagePutsTheStallOff) {
  Fleet fleet(1);
  fleet.plan.timeouts.stall = absl::Seconds(10);
  fleet.Start();
  while (fleet.Count(v1::ControlRequest::kBegin) == 0) {
    auto [stage, event] = fleet.events.front();
    fleet.events.pop_front();
    fleet.driver->OnEvent(stage, event);
  }
  fleet.events.clear();
  for (int i = 1; i <= 5; ++i) {
    fleet.clock.Advance(absl::Seconds(9));
    v1::ControlEvent progress;
    progress.mutable_progress()->set_forwards(i);
    fleet.Post(0, progress, fleet.driver->fence());
    fleet.Run();
    fleet.driver->OnTimer();
    EXPECT_FALSE(fleet.driver->finished());
  }
}

TEST(RunDriver, AStateOtherThanTheOneToldIsASplitAndEndsTheRun) {
  const std::function<void(v1::ControlEvent*)> lies[] = {
      [](v1::ControlEvent* e) { if (e->has_ready()) e->mutable_ready()->set_state_id(1); },
      [](v1::ControlEvent* e) { if (e->has_computed()) e->mutable_computed()->set_base_state_id(1); },
      [](v1::ControlEvent* e) { if (e->has_committed()) e->mutable_committed()->set_state_id(1); },
  };
  for (const auto& lie : lies) {
    Fleet fleet(2);
    fleet.Start();
    while (!fleet.events.empty()) {
      auto [stage, event] = std::move(fleet.events.front());
      fleet.events.pop_front();
      lie(&event);
      fleet.driver->OnEvent(stage, event);
    }
    EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("stage 0"));
    EXPECT_EQ(fleet.driver->committed_steps(), 0);
  }
}

TEST(RunDriver, AStepThatOutlastsItsOwnLimitEndsTheRun) {
  Fleet fleet(1);
  fleet.plan.timeouts.stall = absl::Seconds(100);
  fleet.plan.timeouts.step = absl::Seconds(5);
  fleet.Start();
  while (fleet.Count(v1::ControlRequest::kBegin) == 0) {
    auto [stage, event] = fleet.events.front();
    fleet.events.pop_front();
    fleet.driver->OnEvent(stage, event);
  }
  fleet.events.clear();
  EXPECT_EQ(fleet.driver->NextDeadline(), absl::Seconds(5));
  fleet.clock.Advance(absl::Seconds(5));
  fleet.driver->OnTimer();
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("timeouts.step_seconds"));
}

TEST(RunDriver, AnEvaluationCanStallToo) {
  Fleet fleet(1);
  fleet.plan.timeouts.stall = absl::Seconds(30);
  fleet.plan.total_steps = 0;
  fleet.plan.evaluation_micro_batches = {4};
  fleet.Start();
  while (fleet.Count(v1::ControlRequest::kEvaluate) == 0) {
    auto [stage, event] = fleet.events.front();
    fleet.events.pop_front();
    fleet.driver->OnEvent(stage, event);
  }
  fleet.events.clear();
  EXPECT_EQ(fleet.driver->NextDeadline(), absl::Seconds(30));
  fleet.clock.Advance(absl::Seconds(30));
  fleet.driver->OnTimer();
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("the evaluation after step 0"));
}

TEST(RunDriver, MessagesOfAnOlderFenceAreDropped) {
  Fleet fleet(1);
  fleet.Start();
  fleet.events.clear();
  v1::Fence old;
  old.set_epoch(3);
  old.set_generation(9);
  v1::ControlEvent failed;
  failed.mutable_failed()->set_code(13);
  fleet.Post(0, failed, old);
  fleet.Run();
  EXPECT_FALSE(fleet.driver->finished());
}

TEST(RunDriver, ARefusalSaysWhoHoldsTheStage) {
  Fleet fleet(1);
  fleet.Start();
  fleet.events.clear();
  v1::ControlEvent refused;
  refused.mutable_refused()->set_holder_job_id("other-job");
  refused.mutable_refused()->mutable_holder_fence()->set_epoch(7);
  refused.mutable_refused()->set_reason("the stage works for another job");
  fleet.Post(0, refused, {});
  fleet.Run();
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(fleet.driver->result().message()), HasSubstr("other-job"));
}

TEST(RunDriver, AFailedStageStopsTheRunWithItsCodeAndWords) {
  Fleet fleet(2);
  fleet.Start();
  v1::ControlEvent failed;
  failed.mutable_failed()->set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
  failed.mutable_failed()->set_phase("RUNNING");
  failed.mutable_failed()->mutable_attempt()->set_step(5);
  failed.mutable_failed()->set_micro_batch(2);
  failed.mutable_failed()->set_blame(v1::UP);
  failed.mutable_failed()->set_text("out of memory");
  fleet.events.clear();
  fleet.Post(1, failed, fleet.driver->fence());
  fleet.Run();
  EXPECT_EQ(fleet.driver->result().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(fleet.driver->result().message(),
            "stage 1 failed (RUNNING, step 5, micro-batch 2) (over the link from stage 0): out of memory");
}

TEST(RunDriver, AnInterruptFinishesTheStepInWork) {
  Fleet fleet(2);
  fleet.plan.total_steps = 100;
  fleet.plan.evaluation_micro_batches = {4};
  fleet.Start();
  while (fleet.steps.size() < 5) {
    auto [stage, event] = fleet.events.front();
    fleet.events.pop_front();
    fleet.driver->OnEvent(stage, event);
  }
  fleet.driver->Interrupt();
  fleet.Run();
  EXPECT_TRUE(fleet.driver->finished());
  EXPECT_TRUE(fleet.driver->result().ok());
  EXPECT_LE(fleet.steps.size(), 7u);
  EXPECT_EQ(fleet.driver->committed_steps(), static_cast<std::int64_t>(fleet.steps.size()));
  EXPECT_THAT(fleet.evaluations, IsEmpty());
}

TEST(RunDriver, AnInterruptFinishesTheEvaluationInWorkSoThatTheWeightsCanBeRead) {
  Fleet fleet(2);
  fleet.plan.evaluation_micro_batches = {4};
  fleet.plan.step_shape = [](std::int64_t step) { return StepShape{step - 1, {2, 2}}; };  // an epoch each
  fleet.Start();
  while (fleet.Count(v1::ControlRequest::kEvaluate) == 0) {
    auto [stage, event] = fleet.events.front();
    fleet.events.pop_front();
    fleet.driver->OnEvent(stage, event);
  }
  fleet.driver->Interrupt();
  EXPECT_FALSE(fleet.driver->finished());  // its stages are not READY
  fleet.Run();
  EXPECT_TRUE(fleet.driver->finished());
  EXPECT_TRUE(fleet.driver->result().ok());
  EXPECT_EQ(fleet.evaluations.size(), 1u);
  EXPECT_EQ(fleet.driver->committed_steps(), 1);
}

TEST(RunDriver, AnInterruptOfAnEvaluationAloneStopsAtOnce) {
  Fleet fleet(2);
  fleet.plan.total_steps = 0;
  fleet.plan.evaluation_micro_batches = {4};
  fleet.Start();
  while (fleet.Count(v1::ControlRequest::kEvaluate) == 0) {
    auto [stage, event] = fleet.events.front();
    fleet.events.pop_front();
    fleet.driver->OnEvent(stage, event);
  }
  fleet.driver->Interrupt();
  EXPECT_TRUE(fleet.driver->finished());
  EXPECT_THAT(fleet.evaluations, IsEmpty());
}

}  // namespace
}  // namespace resbm::coordinator
