// When tensors crossed, as a timeline wants to know it.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "proto/base/clock.h"
#include "proto/wire/link_endpoint.h"
#include "tests/proto/wire/recording_link.h"
#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {
namespace {

using absl::Milliseconds;

// Three chunks.
EncodedTensor Sample(std::uint64_t seed) { return TensorOf({8, 40000}, WireDtype::kFloat16, seed); }

class LinkTransfers : public ::testing::Test, protected Ends {
 protected:
  LinkTransfers() {
    up.endpoint.RecordTransfers(&clock_);
    down.endpoint.RecordTransfers(&clock_);
  }

  void SendDown(std::uint64_t step, std::uint32_t micro_batch) {
    up.endpoint.Send(WorkOf(v1::ACTIVATION, step, micro_batch), Sample(micro_batch));
  }
  void ExpectDown(std::uint64_t step, std::uint32_t micro_batch) {
    down.endpoint.Expect(ExpectedOf(WorkOf(v1::ACTIVATION, step, micro_batch), Sample(0)));
  }
  // One message, each 10 ms after the one before.
  void MoveOne() {
    clock_.Advance(Milliseconds(10));
    ASSERT_EQ(Move(&up, &down, 1), 1);
  }

  FakeClock clock_;
};

TEST_F(LinkTransfers, ATensorLeavesFromSendToItsLastMessageAndArrivesFromItsFirstMessageOn) {
  SendDown(7, 2);
  ExpectDown(7, 2);
  clock_.Advance(Milliseconds(5));
  Join();
  for (int i = 0; i < 3; ++i) MoveOne();
  const std::vector<Transfer> sent = up.endpoint.TakeTransfers(7);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].sent);
  EXPECT_EQ(sent[0].step, 7u);
  EXPECT_EQ(sent[0].micro_batch, 2u);
  EXPECT_EQ(sent[0].payload_bytes, 640000u);
  EXPECT_EQ(sent[0].began, Milliseconds(0));
  EXPECT_EQ(sent[0].ended, Milliseconds(35));
  const std::vector<Transfer> received = down.endpoint.TakeTransfers(7);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_FALSE(received[0].sent);
  EXPECT_EQ(received[0].step, 7u);
  EXPECT_EQ(received[0].micro_batch, 2u);
  EXPECT_EQ(received[0].payload_bytes, 640000u);
  EXPECT_EQ(received[0].began, Milliseconds(15));
  EXPECT_EQ(received[0].ended, Milliseconds(35));
  EXPECT_TRUE(up.endpoint.TakeTransfers(7).empty()) << "each is taken once";
}

TEST_F(LinkTransfers, ATensorThatABrokenLinkCutInTwoIsOneTransfer) {
  SendDown(1, 0);
  ExpectDown(1, 0);
  Join(1);
  MoveOne();
  up.Break();
  down.Break();
  clock_.Advance(Milliseconds(100));
  Join(2);
  for (int i = 0; i < 3; ++i) MoveOne();
  const std::vector<Transfer> sent = up.endpoint.TakeTransfers(1);
  const std::vector<Transfer> received = down.endpoint.TakeTransfers(1);
  ASSERT_EQ(sent.size(), 1u);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(sent[0].ended, Milliseconds(140));
  EXPECT_EQ(received[0].began, Milliseconds(10));
  EXPECT_EQ(received[0].ended, Milliseconds(140));
}

TEST_F(LinkTransfers, ATensorThatIsSentAgainIsNotRecordedAgain) {
  SendDown(1, 0);
  ExpectDown(1, 0);
  Join(1);
  // Written in full, but the last message is lost with the connection.
  Move(&up, &down, 2);
  EXPECT_NE(up.Take(), "");
  up.Break();
  down.Break();
  clock_.Advance(Milliseconds(100));
  Join(2);
  for (int i = 0; i < 3; ++i) MoveOne();
  const std::vector<Transfer> sent = up.endpoint.TakeTransfers(1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].ended, Milliseconds(0));
  EXPECT_EQ(down.endpoint.TakeTransfers(1).size(), 1u);
}

TEST_F(LinkTransfers, ATensorThatThePeerHasAlthoughItsWriteWasNeverConfirmedHasLeftWhenThePeerSaysSo) {
  SendDown(1, 0);
  ExpectDown(1, 0);
  Join(1);
  Move(&up, &down, 2);
  const auto last = up.endpoint.NextMessage(up.connection.get());
  ASSERT_TRUE(last.has_value());
  ASSERT_TRUE(down.Give(Flat(*last)).ok());
  up.Break();
  down.Break();
  clock_.Advance(Milliseconds(100));
  Join(2);
  const std::vector<Transfer> sent = up.endpoint.TakeTransfers(1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].ended, Milliseconds(100));
}

TEST_F(LinkTransfers, WhatCameForALaterStepStaysUntilThatStepIsAskedFor) {
  ExpectDown(1, 0);
  ExpectDown(2, 0);
  SendDown(1, 0);
  SendDown(2, 0);
  Join();
  for (int i = 0; i < 6; ++i) MoveOne();
  ASSERT_EQ(down.endpoint.TakeTransfers(1).size(), 1u);
  const std::vector<Transfer> later = down.endpoint.TakeTransfers(2);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].step, 2u);
  EXPECT_EQ(later[0].began, Milliseconds(40));
}

TEST_F(LinkTransfers, NothingIsRecordedOfEvaluationsOrWhenItIsSwitchedOff) {
  v1::TensorHeader evaluation = WorkOf(v1::ACTIVATION, 1, 0);
  evaluation.set_evaluation(3);
  up.endpoint.Send(evaluation, Sample(0));
  down.endpoint.Expect(ExpectedOf(evaluation, Sample(0)));
  Join();
  for (int i = 0; i < 3; ++i) MoveOne();
  EXPECT_TRUE(up.endpoint.TakeTransfers(1000).empty());
  EXPECT_TRUE(down.endpoint.TakeTransfers(1000).empty());

  SendDown(1, 0);
  ExpectDown(1, 0);
  MoveOne();
  up.endpoint.RecordTransfers(nullptr);
  down.endpoint.RecordTransfers(nullptr);
  for (int i = 0; i < 2; ++i) MoveOne();
  EXPECT_TRUE(up.endpoint.TakeTransfers(1000).empty());
  EXPECT_TRUE(down.endpoint.TakeTransfers(1000).empty());

  // The next after it was switched on again is whole.
  up.endpoint.RecordTransfers(&clock_);
  down.endpoint.RecordTransfers(&clock_);
  SendDown(1, 1);
  ExpectDown(1, 1);
  for (int i = 0; i < 3; ++i) MoveOne();
  ASSERT_EQ(up.endpoint.TakeTransfers(1).size(), 1u);
  const std::vector<Transfer> received = down.endpoint.TakeTransfers(1);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].ended - received[0].began, Milliseconds(20));
}

TEST(TransferLog, IsBounded) {
  FakeClock clock;
  TransferLog log;
  log.Start(&clock);
  v1::TensorHeader header;
  header.set_step(1);
  for (std::uint64_t i = 0; i < 3 * TransferLog::kMost; ++i) {
    log.Queued(i, header);
    log.MessageCame();
    log.Received(header);
  }
  log.Written(3 * TransferLog::kMost);
  EXPECT_EQ(log.Take(1).size(), TransferLog::kMost);
}

}  // namespace
}  // namespace resbm::wire
