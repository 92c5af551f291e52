// Stages with their threads: for ThreadSanitizer above all.
#include "stage_server/host/stage.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/stage_server/host/pipeline.h"

namespace resbm::stage_server::testing {
namespace {

constexpr int kSteps = 5;

std::array<std::string, 2> WeightsWithoutTrouble() {
  Pipeline pipeline;
  pipeline.Train(kSteps);
  return pipeline.Weights(100 + kSteps);
}

TEST(Stage, TwoStagesTrainAndCommitTheSameSteps) {
  const auto weights = WeightsWithoutTrouble();
  EXPECT_EQ(weights[0].size(), 8u);
  EXPECT_NE(weights[0], weights[1]);
  EXPECT_EQ(weights, WeightsWithoutTrouble());
}

TEST(Stage, LinksThatBreakEveryFewMessagesChangeNothing) {
  const auto weights = WeightsWithoutTrouble();
  for (int break_every : {1, 2, 5}) {
    Pipeline pipeline(break_every);
    pipeline.Train(kSteps);
    EXPECT_EQ(pipeline.Weights(100 + kSteps), weights) << break_every;
  }
}

TEST(Stage, StrangersOnAllDoorsAtOnceChangeNothing) {
  const auto weights = WeightsWithoutTrouble();
  Pipeline pipeline;
  std::atomic<bool> over = false;
  std::atomic<int> answers[Pipeline::kStages] = {};
  std::vector<std::thread> strangers;
  for (std::uint32_t s = 0; s < Pipeline::kStages; ++s) {
    strangers.emplace_back([&, s] {
      Stage& stage = pipeline.stage(s);
      for (int i = 0; i == 0 || !over; ++i) {
        stage.Describe([&](v1::DescribeReply) { ++answers[s]; });
        auto sink = std::make_shared<RecordingSink>();
        const SessionId session = stage.OpenSession(sink);
        v1::ControlRequest request;
        *request.mutable_fence() = MakeFence(0, i % 2);
        switch (i % 3) {
          case 0: *request.mutable_attach() = MakeAttach(s, Pipeline::kStages); break;
          case 1: request.mutable_release(); break;
          case 2: break;  // of no kind: the stream is ended
        }
        stage.Request(session, request, [&] { ++answers[s]; });
        stage.CloseSession(session);
        v1::GetShardRequest get;
        get.set_job_id("job-b");
        stage.GetShard(get, [&](absl::StatusOr<v1::GetShardReply>) { ++answers[s]; });
        v1::PutShardRequest put;
        put.set_job_id("job-b");
        stage.PutShard(put, [&](absl::StatusOr<v1::PutShardReply>) { ++answers[s]; });
        v1::Hello hello;
        hello.set_job_id("job-b");
        stage.FindLink(hello, [&](absl::StatusOr<std::shared_ptr<wire::LinkEndpoint>> found) {
          EXPECT_FALSE(found.ok());
          ++answers[s];
        });
        while (answers[s] < 5 * (i + 1)) std::this_thread::yield();
      }
    });
  }
  pipeline.Train(kSteps);
  over = true;
  for (std::thread& stranger : strangers) stranger.join();
  EXPECT_EQ(pipeline.Weights(100 + kSteps), weights);
  for (std::uint32_t s = 0; s < Pipeline::kStages; ++s) {
    EXPECT_GT(answers[s], 0);
  }
}

TEST(Stage, ANewFenceInTheMiddleOfAnythingIsAnsweredAndTheStepCanBeDoneAgain) {
  const auto weights = WeightsWithoutTrouble();
  Pipeline pipeline;
  pipeline.AttachAll(1);
  pipeline.ResumeAll(100, 0, /*keep=*/false);
  for (std::uint64_t generation = 2; generation < 12; ++generation) {
    pipeline.BeginAll(1, 100);
    // Every other time a step is computed and dropped.
    if (generation % 2 == 0) {
      EXPECT_TRUE(pipeline.Next(1).has_computed());
    }
    pipeline.AttachAll(generation);
    pipeline.ResumeAll(100, 0, /*keep=*/true);
  }
  for (int step = 1; step <= kSteps; ++step) {
    pipeline.BeginAll(step, 99 + step);
    pipeline.CommitAll(step, 99 + step, 100 + step);
  }
  EXPECT_EQ(pipeline.Weights(100 + kSteps), weights);
}

TEST(Stage, ItsTicksReachTheMachineWhileNothingElseHappens) {
  Pipeline pipeline;
  pipeline.AttachAll(1);
  pipeline.ResumeAll(100, 0, /*keep=*/false);
  pipeline.BeginAll(1, 100, /*fed=*/0);
  // Nobody sends anything: only a tick makes the machine say that it waits, again and again.
  double waited = 0;
  for (int i = 0; i < 3; ++i) {
    const auto progress = pipeline.sink(0).WaitForProgress(
        [&](const v1::Progress& p) { return p.waiting_for().seconds() > waited; });
    ASSERT_TRUE(progress.has_value());
    EXPECT_EQ(progress->step(), 1u);
    EXPECT_EQ(progress->waiting_for().direction(), v1::UP);
    waited = progress->waiting_for().seconds();
  }
}

TEST(Stage, ProgressCountsTheBytesThatMovedOnBothLinks) {
  Pipeline pipeline(/*break_every=*/1);  // what goes twice counts once
  pipeline.AttachAll(1);
  pipeline.ResumeAll(100, 0, /*keep=*/false);
  pipeline.BeginAll(1, 100, /*fed=*/1);
  // Two samples: fp32 activations down, gradients up, uint8 inputs, int64 targets.
  const std::uint64_t crossed = 2 * kWidth * sizeof(float);
  const std::uint64_t moved[] = {2 * kWidth + 2 * crossed, 2 * crossed + 2 * sizeof(std::int64_t)};
  for (std::uint32_t s = 0; s < Pipeline::kStages; ++s) {
    const auto progress =
        pipeline.sink(s).WaitForProgress([&](const v1::Progress& p) { return p.moved_bytes() >= moved[s]; });
    ASSERT_TRUE(progress.has_value()) << "stage " << s;
    EXPECT_EQ(progress->moved_bytes(), moved[s]) << "stage " << s;
  }
}

TEST(Stage, RequestsOfASessionThatHasEndedAreDropped) {
  Pipeline pipeline;
  Stage& stage = pipeline.stage(0);
  const auto sink = std::make_shared<RecordingSink>();
  const SessionId session = stage.OpenSession(sink);
  stage.CloseSession(session);
  v1::ControlRequest request;
  *request.mutable_fence() = MakeFence(1, 1);
  *request.mutable_attach() = MakeAttach(0, Pipeline::kStages);
  std::atomic<bool> taken = false;
  stage.Request(session, request, [&] { taken = true; });
  std::atomic<bool> described = false;
  stage.Describe([&](v1::DescribeReply reply) {
    EXPECT_TRUE(taken) << "whoever reads the stream is told that the request was handled";
    EXPECT_EQ(reply.job_id(), "") << "nobody holds the stage";
    EXPECT_EQ(reply.state(), "EMPTY");
    described = true;
  });
  stage.Shutdown(absl::CancelledError("the test is over"));
  EXPECT_TRUE(described);
}

TEST(Stage, ReleaseEndsTheStreamOkAndFreesTheStage) {
  Pipeline pipeline;
  pipeline.Train(1);
  v1::ControlRequest request;
  request.mutable_release();
  pipeline.Send(0, request);
  ASSERT_TRUE(pipeline.sink(0).WaitForEnd().has_value());
  EXPECT_TRUE(pipeline.sink(0).WaitForEnd()->ok());
}

TEST(Stage, ShutdownEndsStreamsAndAnswersEverythingNowAndLater) {
  Pipeline pipeline;
  pipeline.Train(1);
  Stage& stage = pipeline.stage(0);
  // A Hello that is early.
  std::atomic<int> refused = 0;
  v1::Hello hello;
  hello.set_protocol_version(wire::kProtocolVersion);
  hello.set_job_id("job-a");
  *hello.mutable_fence() = MakeFence(9, 1);
  const auto count = [&](auto reply) { refused += absl::IsUnavailable(reply.status()); };
  stage.FindLink(hello, count);
  stage.Shutdown(absl::UnavailableError("the server stops"));
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(pipeline.sink(0).WaitForEnd()->code(), absl::StatusCode::kUnavailable);
  stage.FindLink(hello, count);
  stage.GetShard(v1::GetShardRequest(), count);
  stage.PutShard(v1::PutShardRequest(), count);
  auto late = std::make_shared<RecordingSink>();
  stage.OpenSession(late);
  EXPECT_EQ(late->WaitForEnd()->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(refused, 4);
  EXPECT_TRUE(stage.WaitUntilIdle(absl::Minutes(1)));
}

}  // namespace
}  // namespace resbm::stage_server::testing
