// Numbers of dials, and a peer that will not have the link: who goes on, and who gives up.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "proto/wire/link_endpoint.h"
#include "tests/proto/wire/recording_link.h"
#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {
namespace {

// Three chunks.
EncodedTensor Sample(std::uint64_t seed) { return TensorOf({8, 40000}, WireDtype::kFloat16, seed); }

class LinkDialTest : public ::testing::Test, protected Ends {
 protected:
  void SendDown(std::uint32_t micro_batch, const EncodedTensor& tensor) {
    up.endpoint.Send(WorkOf(v1::ACTIVATION, 1, micro_batch), tensor);
  }
  void ExpectDown(std::uint32_t micro_batch) {
    down.endpoint.Expect(ExpectedOf(WorkOf(v1::ACTIVATION, 1, micro_batch), Sample(0)));
  }
};

TEST_F(LinkDialTest, ANewerDialReplacesAnOlderOne) {
  SendDown(0, Sample(0));
  ExpectDown(0);
  Join(5);
  EXPECT_EQ(Move(&up, &down, 2), 2);
  const auto old_up = up.connection;
  const auto old_down = down.connection;
  const std::string last_of_old = up.Take();
  Join(6);
  EXPECT_EQ(old_up->closed->code(), absl::StatusCode::kAborted);
  EXPECT_EQ(old_down->closed->code(), absl::StatusCode::kAborted);
  const std::string_view view = last_of_old;
  EXPECT_EQ(*down.endpoint.OnChunk(old_down.get(), *ParseLinkMessage({&view, 1})->chunk), LinkEndpoint::Taken::kYes);
  EXPECT_EQ(down.listener.count("tensor"), 0) << "a chunk of the replaced connection is ignored";
  EXPECT_FALSE(up.endpoint.NextMessage(old_up.get()).has_value());
  up.endpoint.OnClosed(old_up.get(), absl::UnavailableError("late"));
  EXPECT_TRUE(up.endpoint.connected()) << "the end of a replaced connection changes nothing";
  const auto older = down.endpoint.Connect(std::make_shared<RecordingConnection>(), 4);
  EXPECT_EQ(older.status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(down.endpoint.connected());
  EXPECT_EQ(Move(&up, &down), 3);
  EXPECT_EQ(down.listener.count("tensor"), 1);
}

// Somebody else who has the key took the highest number.
TEST_F(LinkDialTest, NoNumberLocksADiallerOut) {
  up.Dial(~std::uint64_t{0});
  auto connection = std::make_shared<RecordingConnection>();
  EXPECT_TRUE(up.endpoint.Dial(connection).ok());
  EXPECT_TRUE(up.connection->closed.has_value()) << "the dial replaces the other's connection";
  EXPECT_FALSE(connection->closed.has_value());
}

TEST_F(LinkDialTest, ADialIsNewerThanWhateverThisEndHasSeen) {
  up.Dial(41);
  const auto message = up.endpoint.Dial(std::make_shared<RecordingConnection>());
  ASSERT_TRUE(message.ok());
  v1::LinkMessage hello;
  ASSERT_TRUE(hello.ParseFromString(Flat(*message)));
  EXPECT_EQ(hello.hello().dial_seq(), 42u);
}

TEST_F(LinkDialTest, ADiallerCatchesUpWithANumberThatOnlyThePeerHasSeen) {
  down.Dial(1'000'000);
  int dials = 0;
  for (bool greeted = false; !greeted && dials < 30; ++dials) {
    up.connection = std::make_shared<RecordingConnection>();
    const auto message = up.endpoint.Dial(up.connection);
    ASSERT_TRUE(message.ok());
    v1::LinkMessage hello;
    ASSERT_TRUE(hello.ParseFromString(Flat(*message)));
    // As an acceptor does.
    const auto answer = down.endpoint.Connect(std::make_shared<RecordingConnection>(), hello.hello().dial_seq());
    greeted = answer.ok();
    if (!greeted) up.endpoint.OnClosed(up.connection.get(), answer.status());
  }
  EXPECT_LE(dials, 20);
  EXPECT_EQ(up.listener.count("error"), 0);
}

TEST_F(LinkDialTest, ARefusalOfTheLinkItselfEndsItOnce) {
  up.Dial(1);
  const absl::Status refused = absl::FailedPreconditionError("the stage belongs to job other");
  up.endpoint.OnClosed(up.connection.get(), refused);
  EXPECT_EQ(up.listener.events(), std::vector<std::string>{"error"});
  EXPECT_EQ(up.listener.status(), refused);
  EXPECT_TRUE(absl::IsFailedPrecondition(up.endpoint.Dial(std::make_shared<RecordingConnection>()).status()));
}

TEST_F(LinkDialTest, ARefusalOfAConnectionThatWasReplacedMeansNothing) {
  up.Dial(1);
  const auto old = up.connection;
  up.Dial(2);
  up.endpoint.OnClosed(old.get(), absl::FailedPreconditionError("late"));
  EXPECT_EQ(up.listener.count("error"), 0);
  EXPECT_TRUE(up.endpoint.Dial(std::make_shared<RecordingConnection>()).ok());
}

TEST_F(LinkDialTest, OtherEndsOfAStreamAreDialledAgain) {
  for (const absl::StatusCode code : {absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
                                      absl::StatusCode::kCancelled, absl::StatusCode::kAborted,
                                      absl::StatusCode::kDataLoss, absl::StatusCode::kInternal}) {
    up.connection = std::make_shared<RecordingConnection>();
    ASSERT_TRUE(up.endpoint.Dial(up.connection).ok()) << absl::StatusCodeToString(code);
    up.endpoint.OnClosed(up.connection.get(), absl::Status(code, "ended"));
  }
  EXPECT_EQ(up.listener.count("disconnected"), 6);
  EXPECT_EQ(up.listener.count("error"), 0);
}

}  // namespace
}  // namespace resbm::wire
