// A micro-batch of n samples: fp32 activations and gradients 16 n bytes each, uint8 inputs 4 n, int64 targets 8 n.
#include "stage_server/core/buffer_plan.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/stage_server/support/harness.h"
#include "tests/stage_server/support/specs.h"

namespace resbm::stage_server::testing {
namespace {

constexpr std::uint64_t kMaxTensor = 1 << 20;

BufferPlan Plan(std::uint32_t stage, std::uint32_t stages, std::uint32_t window, std::vector<std::int64_t> samples,
                std::vector<std::int64_t> next = {}) {
  const auto shape = StageShape::FromSpec(MakeSpec(stage, stages, window));
  EXPECT_TRUE(shape.ok()) << shape.status();
  const auto plan = PlanBuffers(*shape, samples, next, kMaxTensor);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(BufferPlan());
}

TEST(BufferPlan, AMiddleStageHoldsAWindowOfActivationsAndGradientsAndKeepsAllItsGradients) {
  const BufferPlan plan = Plan(1, 3, 2, {3, 2, 3, 1}, {9, 9});
  EXPECT_EQ(plan.inbox_bytes, 2 * 16u * (3 + 3)) << "the two largest, from either side";
  EXPECT_EQ(plan.retained_bytes, 16u * (3 + 3) + 16u * (3 + 2 + 3 + 1));
  EXPECT_EQ(plan.total(), plan.inbox_bytes + plan.retained_bytes);
}

TEST(BufferPlan, TheEndStagesHoldWhatTheCoordinatorSendsForThisStepAndTheNext) {
  const BufferPlan first = Plan(0, 2, 1, {3, 2}, {4});
  EXPECT_EQ(first.inbox_bytes, 4u * (3 + 2 + 4) + 16u * 3);
  EXPECT_EQ(first.retained_bytes, 16u * 3);
  const BufferPlan last = Plan(1, 2, 1, {3, 2}, {4});
  EXPECT_EQ(last.inbox_bytes, 16u * 3 + 8u * (3 + 2 + 4));
  EXPECT_EQ(last.retained_bytes, 16u * (3 + 2));
  const BufferPlan only = Plan(0, 1, 1, {3, 2}, {4});
  EXPECT_EQ(only.inbox_bytes, (4u + 8u) * (3 + 2 + 4));
  EXPECT_EQ(only.retained_bytes, 0u);
}

TEST(BufferPlan, WithoutAWindowEverythingMayBeUnderWay) {
  const BufferPlan plan = Plan(1, 3, 0, {3, 2});
  EXPECT_EQ(plan.inbox_bytes, 2 * 16u * (3 + 2));
  EXPECT_EQ(plan.retained_bytes, 2 * 16u * (3 + 2));
}

TEST(BufferPlan, ABadMicroBatchIsRefused) {
  const auto shape = StageShape::FromSpec(MakeSpec(1, 3, 2));
  ASSERT_TRUE(shape.ok());
  EXPECT_TRUE(absl::IsInvalidArgument(PlanBuffers(*shape, {-1}, {}, kMaxTensor).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(PlanBuffers(*shape, {1 << 20}, {}, kMaxTensor).status()));
}

TEST(BufferPlan, AStepWhoseBuffersDoNotFitUnderTheLimitIsRefusedWithWhatToChange) {
  const auto begin = [](Harness& h) {
    h.Attach();
    h.Resume(MakeInit(MakeSpec(1, 3, /*window=*/2)));
    h.FinishAllWork();
    ASSERT_TRUE(h.last_event().has_ready());
    h.Define(MakeProgram(1, "F0 F1 B0 F2 B1 B2", 2));
    h.Begin(MakeBegin(h.fence(), 1, 100, 1, {3, 3, 2}));
  };
  Harness free(1, 3);
  begin(free);
  EXPECT_EQ(free.state(), State::kRunning);
  const std::uint64_t loaded = TotalBytes(free.last_event().ready().memory());
  const std::uint64_t needed = loaded + Plan(1, 3, 2, {3, 3, 2}).total();
  for (const std::uint64_t missing : {0, 1}) {
    StageMachineOptions options;
    options.memory_limit_bytes = needed - missing;
    Harness h(1, 3, options);
    begin(h);
    if (missing == 0) {
      EXPECT_EQ(h.state(), State::kRunning);
      continue;
    }
    EXPECT_EQ(h.state(), State::kReady) << "its weights are intact";
    EXPECT_EQ(static_cast<absl::StatusCode>(h.last_failure().code()), absl::StatusCode::kResourceExhausted);
    const std::string& text = h.last_failure().text();
    EXPECT_NE(text.find("--memory-limit is " + std::to_string(needed - 1)), std::string::npos) << text;
    EXPECT_NE(text.find("smaller micro-batches"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace resbm::stage_server::testing
