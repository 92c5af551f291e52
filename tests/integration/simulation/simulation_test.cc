// Seeds decide the order of everything; a failure names the seed, so that it can be run again alone:
//   bazel test //tests/integration/simulation:simulation_test --test_arg=--gtest_filter=... --test_env=SEED=7
#include "tests/integration/simulation/simulation.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/job/load_job.h"
#include "coordinator/plan/model_plan.h"
#include "coordinator/plan/partition.h"
#include "coordinator/plan/schedule.h"
#include "coordinator/run/programs.h"

namespace resbm::simulation {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;

// Three cut points; small tensors, but for those of `big`, which take several chunks.
constexpr char kJob[] = R"pb(
  name: "simulated"
  model {
    resnet {
      input { channels: 1 height: 4 width: 4 }
      stem { channels: 8 }
      group { blocks: 4 channels: 8 }
    }
  }
  boundary { ratio: 2 }
  cut_point { after: "group0.0" }
  cut_point { after: "group0.1" boundary { kind: IDENTITY } wire { activations: FP32 } }
  cut_point { after: "group0.2" boundary { kind: TOPK } }
)pb";

struct Case {
  int stages = 2;
  std::vector<std::int64_t> micro_batches = {2, 2, 1};
  v1::Schedule::Kind schedule = v1::Schedule::ONE_F_ONE_B;
  std::vector<int> windows;
  std::int64_t steps = 4;
  bool evaluate = false;
  double clip_norm = 0;
};

coordinator::RunPlan MakePlan(const Case& c) {
  const auto loaded = coordinator::ParseJob(kJob, "job.textproto", {});
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  const v1::Job& job = loaded->job;
  const auto model = coordinator::ExpandModel(job);
  EXPECT_TRUE(model.ok()) << model.status();
  const auto partition = coordinator::PlanPartition(job, *model, c.stages);
  EXPECT_TRUE(partition.ok()) << partition.status();
  const int m = static_cast<int>(c.micro_batches.size());
  const auto windows = coordinator::ResolveWindows(c.schedule, c.stages, m, c.windows);
  EXPECT_TRUE(windows.ok()) << windows.status();

  coordinator::RunPlan plan;
  plan.job_id = "simulated-1";
  plan.seed = 5;
  plan.origin = "simulated";
  for (int s = 0; s < c.stages; ++s) {
    plan.stages.push_back(coordinator::MakeStageSpec(job, *model, *partition, s, *windows));
  }
  plan.total_steps = c.steps;
  plan.step_shape = [sizes = c.micro_batches, total = c.steps](std::int64_t step) {
    // The last step has fewer micro-batches, as the last batch of an epoch may.
    auto shape = sizes;
    if (step == total && shape.size() > 1) shape.pop_back();
    return coordinator::StepShape{(step - 1) / 2, shape};
  };
  plan.learning_rate = [](std::int64_t step) { return 0.1 / static_cast<double>(step); };
  plan.clip_norm = c.clip_norm;
  plan.train_programs = [w = *windows](std::uint32_t n) {
    return coordinator::TrainingProgramMessages(static_cast<int>(n), w);
  };
  plan.evaluation_programs = [stages = c.stages](std::uint32_t n) {
    return coordinator::EvaluationProgramMessages(stages, static_cast<int>(n));
  };
  if (c.evaluate) plan.evaluation_micro_batches = {3, 3, 3, 3, 3, 3, 1};
  return plan;
}

// Seeds [1, count], or the one in $SEED.
std::vector<std::uint64_t> Seeds(int count) {
  if (const char* one = std::getenv("SEED")) return {std::strtoull(one, nullptr, 10)};
  std::vector<std::uint64_t> seeds;
  for (int s = 1; s <= count; ++s) seeds.push_back(static_cast<std::uint64_t>(s));
  return seeds;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (int stages : {1, 2, 3, 4}) {
    Case a;
    a.stages = stages;
    cases.push_back(a);
    Case b = a;
    b.schedule = v1::Schedule::GPIPE;
    b.evaluate = true;
    b.clip_norm = 1;
    cases.push_back(b);
    Case c = a;
    c.micro_batches = {1};
    cases.push_back(c);
    Case d = a;
    d.micro_batches = {2, 2, 2, 1, 1, 1};
    d.windows = std::vector<int>(stages, 5);
    d.evaluate = true;
    cases.push_back(d);
  }
  return cases;
}

TEST(Simulation, AnyOrderOfEventsGivesTheSameWeightsAndBreaksNoInvariant) {
  for (const Case& c : Cases()) {
    const Outcome first = Simulation(MakePlan(c), 1000, {}).Run();
    ASSERT_TRUE(first.status.ok()) << first.status;
    ASSERT_THAT(first.violations, IsEmpty());
    EXPECT_EQ(first.steps, c.steps);
    EXPECT_EQ(first.evaluations, c.evaluate ? 2 : 0);
    for (std::uint64_t seed : Seeds(40)) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", stages " + std::to_string(c.stages));
      const Outcome again = Simulation(MakePlan(c), seed, {}).Run();
      EXPECT_TRUE(again.status.ok()) << again.status;
      EXPECT_THAT(again.violations, IsEmpty());
      EXPECT_EQ(again.weights, first.weights);
      EXPECT_EQ(again.losses, first.losses);
    }
  }
}

TEST(Simulation, BrokenLinksAndSpoiledChunksCostNothingButTime) {
  int breaks = 0, spoiled = 0;
  for (const Case& c : Cases()) {
    const Outcome clean = Simulation(MakePlan(c), 1000, {}).Run();
    for (std::uint64_t seed : Seeds(40)) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", stages " + std::to_string(c.stages));
      Faults faults;
      faults.link_breaks = 12;
      faults.spoiled_chunks = 2;
      const Outcome faulty = Simulation(MakePlan(c), seed, faults).Run();
      EXPECT_TRUE(faulty.status.ok()) << faulty.status;
      EXPECT_THAT(faulty.violations, IsEmpty());
      EXPECT_EQ(faulty.weights, clean.weights);
      EXPECT_EQ(faulty.losses, clean.losses);
      breaks += faulty.link_breaks;
      spoiled += faulty.spoiled_chunks;
    }
  }
  if (std::getenv("SEED") == nullptr) {
    EXPECT_GT(breaks, 2000);
    EXPECT_GT(spoiled, 300);
  }
}

TEST(Simulation, TensorsOfSeveralChunksSurviveBrokenLinks) {
  Case c;
  c.stages = 3;
  c.micro_batches = {5000, 5000, 4000};  // 320 KB and 2.5 MB cross each cut
  c.steps = 2;
  const Outcome clean = Simulation(MakePlan(c), 1000, {}).Run();
  ASSERT_TRUE(clean.status.ok()) << clean.status;
  for (std::uint64_t seed : Seeds(2)) {
    Faults faults;
    faults.link_breaks = 8;
    faults.spoiled_chunks = 2;
    const Outcome faulty = Simulation(MakePlan(c), seed, faults).Run();
    EXPECT_TRUE(faulty.status.ok()) << faulty.status;
    EXPECT_THAT(faulty.violations, IsEmpty());
    EXPECT_EQ(faulty.weights, clean.weights);
  }
}

// Scenario 28.
TEST(Simulation, ATensorThatCrawlsForLongerThanTheStallLimitIsNoStall) {
  Case c;
  c.stages = 3;
  c.micro_batches = {12000, 12000};
  c.steps = 2;
  const Outcome fast = Simulation(MakePlan(c), 1000, {}).Run();
  ASSERT_TRUE(fast.status.ok()) << fast.status;
  for (std::uint64_t seed : Seeds(2)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Faults faults;
    faults.slow_link = absl::Seconds(5);  // for 256 KiB: the 6.1 MB of a micro-batch take two minutes
    const Outcome slow = Simulation(MakePlan(c), seed, faults).Run();
    EXPECT_TRUE(slow.status.ok()) << slow.status;
    EXPECT_THAT(slow.violations, IsEmpty());
    EXPECT_EQ(slow.weights, fast.weights);
    EXPECT_GT(slow.time, absl::Minutes(6));
  }
}

TEST(Simulation, ANonFiniteValueSkipsTheStepOnAllStages) {
  std::int64_t skipped = 0;
  for (std::uint64_t seed : Seeds(100)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Case c;
    c.stages = 3;
    c.steps = 6;
    Faults faults;
    faults.poisoned_steps = 2;
    faults.link_breaks = 3;
    const Outcome outcome = Simulation(MakePlan(c), seed, faults).Run();
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_EQ(outcome.steps, 6);
    skipped += outcome.skipped;
  }
  if (std::getenv("SEED") == nullptr) {
    EXPECT_GT(skipped, 50);
  }
}

TEST(Simulation, ALostSessionOrACrashEndsTheRunByNameAndSplitsNoCommit) {
  int ended = 0;
  for (std::uint64_t seed : Seeds(300)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Case c;
    c.stages = 3;
    c.steps = 6;
    Faults faults;
    if (seed % 2 == 0) {
      faults.lost_sessions = 1;
    } else {
      faults.crashes = 1;
    }
    faults.link_breaks = 2;
    const Outcome outcome = Simulation(MakePlan(c), seed, faults).Run();
    EXPECT_THAT(outcome.violations, IsEmpty());
    if (outcome.status.ok()) continue;  // the fault came after the end
    ++ended;
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("stage "));
  }
  if (std::getenv("SEED") == nullptr) {
    EXPECT_GT(ended, 150);
  }
}

TEST(Simulation, NoStageHoldsMoreGraphsThanItsWindow) {
  Case c;
  c.stages = 4;
  c.micro_batches = {1, 1, 1, 1, 1, 1, 1, 1};
  for (std::uint64_t seed : Seeds(5)) {
    const Outcome outcome = Simulation(MakePlan(c), seed, {}).Run();
    EXPECT_THAT(outcome.most_live_graphs, ElementsAre(Le(4), Le(3), Le(2), Le(1)));
  }
}

}  // namespace
}  // namespace resbm::simulation
