#include "proto/data/sampler.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "proto/data/counter_random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::data {
namespace {

using ::testing::ElementsAre;

// The first outputs of the published generator (https://prng.di.unimi.it/splitmix64.c) for a state of 0.
TEST(CounterRandom, IsSplitMix64) {
  const CounterRandom random(0);
  EXPECT_EQ(random.At(0), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(random.At(1), 0x6E789E6AA1B965F4u);
  EXPECT_EQ(random.At(2), 0x06C45D188009454Fu);
}

TEST(CounterRandom, BelowIsEven) {
  const CounterRandom random(9);
  std::vector<int> count(7, 0);
  for (int i = 0; i < 70000; ++i) ++count[random.Below(7, i)];
  for (int n : count) EXPECT_NEAR(n, 10000, 400);  // 4 standard deviations
}

TEST(CounterRandom, StreamsDiffer) {
  const CounterRandom random(1);
  std::set<std::uint64_t> seen;
  for (int stream = 0; stream < 100; ++stream) {
    for (int i = 0; i < 100; ++i) seen.insert(random.Stream(stream).At(i));
  }
  EXPECT_EQ(seen.size(), 10000u);
}

TEST(Sampler, SplitSizesAreThoseOfTensorSplit) {
  EXPECT_THAT(SplitSizes(8, 3), ElementsAre(3, 3, 2));
  EXPECT_THAT(SplitSizes(96, 6), ElementsAre(16, 16, 16, 16, 16, 16));
  EXPECT_THAT(SplitSizes(7, 1), ElementsAre(7));
  EXPECT_THAT(SplitSizes(5, 4), ElementsAre(2, 1, 1, 1));
}

TEST(Sampler, FewerSamplesThanMicroBatchesLeaveOutTheEmptyOnes) {
  EXPECT_THAT(SplitSizes(2, 5), ElementsAre(1, 1));
  EXPECT_THAT(SplitSizes(0, 5), ElementsAre());
}

TEST(Sampler, ChunksHaveOneSizeButTheLast) {
  EXPECT_THAT(ChunkSizes(10, 4), ElementsAre(4, 4, 2));
  EXPECT_THAT(ChunkSizes(8, 4), ElementsAre(4, 4));
  EXPECT_THAT(ChunkSizes(3, 100), ElementsAre(3));
  EXPECT_THAT(ChunkSizes(0, 4), ElementsAre());
}

// Must never change: a resumed run would get other samples.
TEST(Sampler, ThePermutationIsTheOneThatItAlwaysWas) {
  EXPECT_THAT(Permutation(1, 0, 10), ElementsAre(2, 1, 4, 9, 0, 8, 5, 7, 6, 3));
  EXPECT_THAT(Permutation(1, 1, 10), ElementsAre(5, 6, 8, 0, 2, 1, 7, 4, 3, 9));
  EXPECT_THAT(Permutation(2, 0, 10), ElementsAre(0, 4, 8, 1, 3, 9, 6, 2, 5, 7));
}

TEST(Sampler, EveryElementCanComeFirst) {
  std::vector<int> count(6, 0);
  for (int epoch = 0; epoch < 6000; ++epoch) ++count[Permutation(4, epoch, 6)[0]];
  for (int n : count) EXPECT_NEAR(n, 1000, 120);
}

TEST(Sampler, AnEpochTakesEachSampleOnceAndKeepsTheSmallerLastBatch) {
  const BatchPlanner planner(3, 50, 16, 4);
  EXPECT_EQ(planner.steps_per_epoch(), 4);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::int64_t> seen;
    for (int i = 1; i <= 4; ++i) {
      const StepBatch batch = planner.Plan(epoch * 4 + i);
      EXPECT_EQ(batch.step, epoch * 4 + i);
      EXPECT_EQ(batch.epoch, epoch);
      EXPECT_EQ(planner.EpochOf(batch.step), epoch);
      if (i < 4) {
        EXPECT_THAT(batch.micro_batch_sizes, ElementsAre(4, 4, 4, 4));
      } else {
        EXPECT_THAT(batch.micro_batch_sizes, ElementsAre(1, 1));
      }
      seen.insert(seen.end(), batch.indices.begin(), batch.indices.end());
    }
    EXPECT_EQ(seen, Permutation(3, epoch, 50));
    std::sort(seen.begin(), seen.end());
    std::vector<std::int64_t> all(50);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(seen, all);
  }
}

TEST(Sampler, OffsetsAddUp) {
  const StepBatch batch = BatchPlanner(3, 50, 11, 4).Plan(1);
  EXPECT_THAT(batch.micro_batch_sizes, ElementsAre(3, 3, 3, 2));
  EXPECT_EQ(batch.Offset(0), 0);
  EXPECT_EQ(batch.Offset(3), 9);
}

TEST(Sampler, APlanDoesNotDependOnWhatWasAskedBefore) {
  const BatchPlanner planner(8, 30, 7, 2);
  std::vector<StepBatch> forward;
  for (int step = 1; step <= 20; ++step) forward.push_back(planner.Plan(step));
  for (int step = 20; step >= 1; --step) {
    EXPECT_EQ(planner.Plan(step).indices, forward[step - 1].indices);
    EXPECT_EQ(BatchPlanner(8, 30, 7, 2).Plan(step).indices, forward[step - 1].indices);
  }
}

TEST(Sampler, AStepLargerThanTheDataTakesItAll) {
  const BatchPlanner planner(8, 5, 64, 4);
  EXPECT_EQ(planner.steps_per_epoch(), 1);
  EXPECT_THAT(planner.Plan(3).micro_batch_sizes, ElementsAre(2, 1, 1, 1));
  EXPECT_EQ(planner.Plan(3).epoch, 2);
}

TEST(Sampler, ThreadsMayPlanAtTheSameTime) {
  const BatchPlanner planner(8, 300, 7, 2);
  std::vector<std::thread> threads;
  std::vector<std::vector<std::int64_t>> got(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int step = 1; step <= 120; ++step) {
        const StepBatch batch = planner.Plan(t % 2 == 0 ? step : 121 - step);
        got[t].insert(t % 2 == 0 ? got[t].end() : got[t].begin(), batch.indices.begin(), batch.indices.end());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 1; t < 4; ++t) EXPECT_EQ(got[t], got[0]);
}

}  // namespace
}  // namespace resbm::data
