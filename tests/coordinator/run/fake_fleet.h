// A RunDriver with stages that do as they are told, for tests of the coordinator's side of the protocol.
#ifndef RESBM_TESTS_COORDINATOR_RUN_FAKE_FLEET_H_
#define RESBM_TESTS_COORDINATOR_RUN_FAKE_FLEET_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "coordinator/run/run_driver.h"
#include "proto/base/clock.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// Stages that answer every request at once, unless a test steps in. Events wait in a queue until Run.
class FakeFleet : public RunDriver::Environment {
 public:
  explicit FakeFleet(int stages) : stages_(stages) {
    plan.job_id = "job";
    plan.coordinator_epoch = 4;
    plan.stages.resize(stages);
    plan.origin = "origin";
    plan.total_steps = 3;
    plan.step_shape = [](std::int64_t) { return Shape(0); };
    plan.learning_rate = [](std::int64_t step) { return 0.1 * static_cast<double>(step); };
    plan.train_programs = plan.evaluation_programs = [stages](std::uint32_t) {
      return std::vector<v1::DefineProgram>(stages);
    };
  }

  // Two micro-batches of two.
  static StepShape Shape(std::int64_t epoch) {
    StepShape shape;
    shape.epoch = epoch;
    shape.micro_batches = {2, 2};
    return shape;
  }

  RunDriver& Start() {
    driver = std::make_unique<RunDriver>(plan, &clock, this);
    driver->Start();
    return *driver;
  }

  void Run() {
    RunUntil([this] { return events.empty(); });
  }

  // Until `done`, at most to the last event that there is.
  template <typename Done>
  void RunUntil(Done done) {
    while (!events.empty() && !done()) {
      auto [stage, event] = std::move(events.front());
      events.pop_front();
      driver->OnEvent(stage, event);
    }
    EXPECT_TRUE(done());
  }
  // Until all stages were sent such a request.
  void RunUntilSent(v1::ControlRequest::KindCase kind) {
    RunUntil([&] { return Count(kind) > 0; });
  }

  void Progress(int stage, const v1::Progress& progress) {
    v1::ControlEvent event;
    *event.mutable_progress() = progress;
    Post(stage, std::move(event), driver->fence());
    Run();
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
    if (stage == stages_ - 1) {
      c.set_loss_sum(8);
      c.set_weight(miscounted ? begin.total_weight() - 1 : begin.total_weight());
    }
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
  bool miscounted = false;  // the last stage loses a sample
  std::set<std::pair<int, std::uint64_t>> poisoned;
  std::vector<std::string> calls;
  std::vector<int> uploads;
  std::vector<StepReport> steps;
  std::vector<EvaluationReport> evaluations;

 private:
  const int stages_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_TESTS_COORDINATOR_RUN_FAKE_FLEET_H_
