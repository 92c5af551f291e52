// What an endpoint keeps to send it again: an activation until its gradient returns, a gradient until the
// decision.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/wire/link_endpoint.h"
#include "tests/proto/wire/recording_link.h"
#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kBytes = 100;

class LinkRetentionTest : public ::testing::Test, protected Ends {
 protected:
  void Send(std::uint64_t step, std::uint32_t micro_batch) {
    const EncodedTensor tensor = TensorOf({kBytes}, WireDtype::kUint8, step * 10 + micro_batch);
    up.endpoint.Send(WorkOf(v1::ACTIVATION, step, micro_batch), tensor);
    down.endpoint.Expect(ExpectedOf(WorkOf(v1::ACTIVATION, step, micro_batch), tensor));
  }
  std::uint64_t retained() const { return up.endpoint.retained_bytes() / kBytes; }
};

TEST_F(LinkRetentionTest, SentTensorsAreKeptUntilReleased) {
  for (std::uint32_t i = 0; i < 3; ++i) Send(1, i);
  EXPECT_EQ(retained(), 3u);
  Join();
  Move(&up, &down);
  EXPECT_EQ(retained(), 3u);
  up.endpoint.ReleaseMicroBatch(1, 1);
  EXPECT_EQ(retained(), 2u) << "in any order";
  up.endpoint.ReleaseMicroBatch(2, 0);
  up.endpoint.ReleaseMicroBatch(1, 1);
  EXPECT_EQ(retained(), 2u) << "another step's, or one released before, changes nothing";
  up.endpoint.ReleaseMicroBatch(1, 0);
  up.endpoint.ReleaseMicroBatch(1, 2);
  EXPECT_EQ(retained(), 0u);
}

TEST_F(LinkRetentionTest, UnsentTensorsAreNotReleased) {
  Send(1, 0);
  Send(1, 1);
  up.endpoint.ReleaseMicroBatch(1, 0);
  up.endpoint.ReleaseThroughStep(1);
  up.endpoint.ReleaseAll();
  EXPECT_EQ(retained(), 2u);
  Join();
  EXPECT_EQ(Move(&up, &down, 1), 1);
  up.endpoint.ReleaseAll();
  EXPECT_EQ(retained(), 1u);
  EXPECT_EQ(Move(&up, &down), 1);
  EXPECT_EQ(down.listener.count("tensor"), 2);
}

TEST_F(LinkRetentionTest, ThePeersAnswerMayOvertakeTheEndOfTheWrite) {
  Send(1, 0);
  Join();
  const auto message = up.endpoint.NextMessage(up.connection.get());
  ASSERT_TRUE(message.has_value());
  up.endpoint.ReleaseMicroBatch(1, 0);
  EXPECT_EQ(retained(), 0u);
  EXPECT_EQ(message->payload.size(), kBytes) << "the message has its own hold on the bytes";
  EXPECT_TRUE(down.Give(Flat(*message)).ok());
  up.endpoint.OnMessageWritten(up.connection.get());
  EXPECT_TRUE(up.endpoint.AllSent());
}

TEST_F(LinkRetentionTest, ADecisionReleasesItsStepAndEarlierOnesAndEvaluation) {
  v1::TensorHeader evaluation = WorkOf(v1::ACTIVATION, 0, 0);
  evaluation.set_evaluation(4);
  const EncodedTensor tensor = TensorOf({kBytes}, WireDtype::kUint8, 0);
  up.endpoint.Send(evaluation, tensor);
  down.endpoint.Expect(ExpectedOf(evaluation, tensor));
  for (std::uint64_t step = 1; step <= 3; ++step) Send(step, 0);
  Join();
  Move(&up, &down);
  EXPECT_EQ(retained(), 4u);
  up.endpoint.ReleaseThroughStep(2);
  EXPECT_EQ(retained(), 1u);
  up.endpoint.ReleaseAll();
  EXPECT_EQ(retained(), 0u);
}

TEST_F(LinkRetentionTest, ReleasedTensorsThatThePeerHasAreFine) {
  for (std::uint32_t i = 0; i < 3; ++i) Send(1, i);
  Join(1);
  Move(&up, &down, 2);
  up.endpoint.ReleaseMicroBatch(1, 0);
  up.endpoint.ReleaseMicroBatch(1, 1);
  up.Break();
  down.Break();
  Join(2);
  EXPECT_EQ(Move(&up, &down), 1);
  EXPECT_EQ(down.listener.count("tensor"), 3);
}

TEST_F(LinkRetentionTest, APeerThatWantsAReleasedTensorEndsTheLinkAtBothEnds) {
  for (std::uint32_t i = 0; i < 3; ++i) Send(1, i);
  Join(1);
  Move(&up, &down);
  up.endpoint.ReleaseMicroBatch(1, 1);
  up.Break();
  // The peer has forgotten all but the first tensor.
  up.Dial(2);
  v1::Hello hello = down.Dial(2);
  hello.set_received_tensors(1);
  const absl::Status status = up.endpoint.OnHello(up.connection.get(), hello);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("link 1: the peer wants tensor 1, which was released"));
  EXPECT_EQ(up.connection->closed, status);
  // This end knows that no dial can mend it ...
  EXPECT_EQ(up.listener.events().back(), "error");
  EXPECT_EQ(up.listener.status(), status);
  EXPECT_TRUE(absl::IsFailedPrecondition(up.endpoint.Dial(std::make_shared<RecordingConnection>()).status()));
  // ... and the other learns it from the status of the stream.
  down.endpoint.OnClosed(down.connection.get(), status);
  EXPECT_EQ(down.listener.events().back(), "error");
  EXPECT_EQ(down.listener.status(), status);
  EXPECT_TRUE(absl::IsFailedPrecondition(down.endpoint.Dial(std::make_shared<RecordingConnection>()).status()));
}

TEST_F(LinkRetentionTest, APeerThatWantsOnlyTensorsThatAreKeptIsServed) {
  for (std::uint32_t i = 0; i < 3; ++i) Send(1, i);
  Join(1);
  Move(&up, &down);
  up.endpoint.ReleaseMicroBatch(1, 0);
  up.Break();
  up.Dial(2);
  v1::Hello hello = down.Dial(2);
  hello.set_received_tensors(1);
  EXPECT_TRUE(up.endpoint.OnHello(up.connection.get(), hello).ok());
}

TEST_F(LinkRetentionTest, APeerThatHasMoreThanWasSentEndsTheLink) {
  Send(1, 0);
  Send(1, 1);
  Join(1);
  Move(&up, &down, 1);
  up.Dial(2);
  v1::Hello hello = down.Dial(2);
  hello.set_received_tensors(2);
  const absl::Status status = up.endpoint.OnHello(up.connection.get(), hello);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the peer has 2 tensors, only 1 were sent"));
  EXPECT_EQ(up.listener.events().back(), "error");
}

TEST_F(LinkRetentionTest, ATensorThatIsSentAgainIsReleasedAfterwards) {
  for (std::uint32_t i = 0; i < 2; ++i) Send(1, i);
  Join(1);
  up.Take();
  up.Take();
  up.Break();
  down.Break();
  Join(2);
  up.endpoint.ReleaseMicroBatch(1, 1);
  EXPECT_EQ(retained(), 2u) << "the peer asked for it on this connection";
  EXPECT_EQ(Move(&up, &down), 2);
  EXPECT_EQ(retained(), 1u);
  EXPECT_EQ(down.listener.count("tensor"), 2);
}

TEST_F(LinkRetentionTest, ReleasedBytesAreFreed) {
  std::weak_ptr<const void> bytes;
  {
    const EncodedTensor tensor = TensorOf({kBytes}, WireDtype::kUint8, 7);
    bytes = tensor.payload.owner();
    up.endpoint.Send(WorkOf(v1::ACTIVATION, 1, 0), tensor);
    down.endpoint.Expect(ExpectedOf(WorkOf(v1::ACTIVATION, 1, 0), tensor));
  }
  Join();
  Move(&up, &down);
  EXPECT_FALSE(bytes.expired());
  up.endpoint.ReleaseMicroBatch(1, 0);
  EXPECT_TRUE(bytes.expired());
}

}  // namespace
}  // namespace resbm::wire
