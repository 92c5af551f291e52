#include "proto/wire/link_endpoint.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/proto/wire/recording_link.h"
#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Taken = LinkEndpoint::Taken;

// Three chunks.
EncodedTensor Sample(std::uint64_t seed) { return TensorOf({8, 40000}, WireDtype::kFloat16, seed); }

std::string Text(const absl::Status& status) { return std::string(status.message()); }

class LinkEndpointTest : public ::testing::Test, protected Ends {
 protected:
  void SendDown(std::uint32_t micro_batch, const EncodedTensor& tensor) {
    up.endpoint.Send(WorkOf(v1::ACTIVATION, 1, micro_batch), tensor);
  }
  void ExpectDown(std::uint32_t micro_batch) {
    down.endpoint.Expect(ExpectedOf(WorkOf(v1::ACTIVATION, 1, micro_batch), Sample(0)));
  }
};

TEST_F(LinkEndpointTest, TensorsArriveInOrderBothWays) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    SendDown(i, Sample(i));
    ExpectDown(i);
    down.endpoint.Send(WorkOf(v1::GRADIENT, 1, i), Sample(10 + i));
    up.endpoint.Expect(ExpectedOf(WorkOf(v1::GRADIENT, 1, i), Sample(0)));
  }
  Join();
  EXPECT_EQ(Move(&up, &down), 12);
  EXPECT_EQ(Move(&down, &up), 12);
  for (const auto& [end, seed] : {std::pair{&down, 0}, std::pair{&up, 10}}) {
    const std::vector<ReceivedTensor> tensors = end->listener.tensors();
    ASSERT_EQ(tensors.size(), 4u);
    for (std::uint32_t i = 0; i < 4; ++i) {
      EXPECT_EQ(tensors[i].header.micro_batch(), i);
      EXPECT_TRUE(Equal(tensors[i].tensor, Sample(seed + i)));
    }
  }
}

TEST_F(LinkEndpointTest, TheHeaderSaysFenceLinkAndDirection) {
  SendDown(2, Sample(5));
  ExpectDown(2);
  Join();
  Move(&up, &down);
  const v1::TensorHeader header = down.listener.tensors().at(0).header;
  EXPECT_EQ(header.fence().epoch(), 3u);
  EXPECT_EQ(header.fence().generation(), 2u);
  EXPECT_EQ(header.link(), 1u);
  EXPECT_EQ(header.towards(), v1::DOWNSTREAM);
  EXPECT_EQ(header.payload_bytes(), 640000u);
  EXPECT_EQ(header.chunk_count(), 3u);
  EXPECT_EQ(header.scale_exponent(), Sample(5).scale_exponent);
}

TEST_F(LinkEndpointTest, AWrongHelloIsRefusedWithBothValues) {
  const v1::Hello good = up.Dial(1);
  const auto refusal = [&](auto change) {
    v1::Hello hello = good;
    change(&hello);
    EXPECT_EQ(down.endpoint.CheckHello(hello).code(), absl::StatusCode::kFailedPrecondition);
    down.Dial(1);
    const absl::Status status = down.endpoint.OnHello(down.connection.get(), hello);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(down.connection->closed, status);
    EXPECT_EQ(down.listener.status(), status);
    EXPECT_FALSE(down.endpoint.connected());
    return Text(status);
  };
  EXPECT_THAT(refusal([](auto* h) { h->set_protocol_version(2); }), HasSubstr("protocol version 2, this end has 1"));
  EXPECT_THAT(refusal([](auto* h) { h->set_job_id("other"); }), HasSubstr("job other, this end has job"));
  EXPECT_THAT(refusal([](auto* h) { h->mutable_fence()->set_epoch(2); }), HasSubstr("fence 2.2, this end has 3.2"));
  EXPECT_THAT(refusal([](auto* h) { h->mutable_fence()->set_generation(3); }), HasSubstr("fence 3.3, this end has"));
  EXPECT_THAT(refusal([](auto* h) { h->set_link(2); }), HasSubstr("link 2, this end has 1"));
  EXPECT_THAT(refusal([](auto* h) { h->set_side(v1::DOWNSTREAM); }), HasSubstr("side number 2"));
  const std::string key = refusal([](auto* h) { h->set_link_key("fedcba9876543210"); });
  EXPECT_THAT(key, HasSubstr("link key"));
  EXPECT_THAT(key, Not(HasSubstr("0123456789abcdef"))) << "a stranger is not told the key";
  EXPECT_TRUE(down.endpoint.CheckHello(good).ok());
  EXPECT_EQ(down.listener.count("connected"), 0);
}

TEST_F(LinkEndpointTest, NothingIsSentBeforeTheHellos) {
  SendDown(0, Sample(0));
  up.Dial(1);
  EXPECT_EQ(up.Take(), "");
  const v1::Hello hello = down.Dial(1);
  ASSERT_TRUE(up.endpoint.OnHello(up.connection.get(), hello).ok());
  EXPECT_EQ(up.connection->writer_wakes, 1);
  EXPECT_NE(up.Take(), "");
}

TEST_F(LinkEndpointTest, AChunkBeforeTheHelloOrASecondHelloIsInvalid) {
  down.Dial(1);
  const std::string chunk = Flat(EncodeChunk(FenceOf(3, 2), "h", 0, SharedBytes()));
  EXPECT_EQ(down.Give(chunk).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(down.listener.events(), ElementsAre("error"));

  Ends other;
  other.Join();
  v1::Hello hello = other.up.endpoint.options().side == v1::UPSTREAM ? End(v1::DOWNSTREAM).Dial(1) : v1::Hello();
  EXPECT_EQ(other.up.endpoint.OnHello(other.up.connection.get(), hello).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(other.up.connection->closed.has_value());
}

TEST_F(LinkEndpointTest, OneMessageIsInFlightAtATime) {
  SendDown(0, Sample(0));
  Join();
  ASSERT_TRUE(up.endpoint.NextMessage(up.connection.get()).has_value());
  EXPECT_FALSE(up.endpoint.NextMessage(up.connection.get()).has_value());
  up.endpoint.OnMessageWritten(up.connection.get());
  EXPECT_TRUE(up.endpoint.NextMessage(up.connection.get()).has_value());
}

TEST_F(LinkEndpointTest, AChunkIsHeldUntilItsTensorIsExpected) {
  SendDown(0, Sample(0));
  Join();
  const std::string first = up.Take();
  EXPECT_EQ(*down.Give(first), Taken::kHold);
  EXPECT_EQ(down.connection->reader_wakes, 0);
  ExpectDown(0);
  EXPECT_EQ(down.connection->reader_wakes, 1);
  ExpectDown(1);
  EXPECT_EQ(down.connection->reader_wakes, 1) << "nothing is held any more";
  EXPECT_EQ(*down.Give(first), Taken::kYes);
  Move(&up, &down);
  EXPECT_EQ(down.listener.count("tensor"), 1);
}

TEST_F(LinkEndpointTest, ASoftInboxLimitPausesReading) {
  down.endpoint.SetInboxLimit(1, /*hard=*/false);
  for (std::uint32_t i = 0; i < 2; ++i) {
    SendDown(i, Sample(i));
    ExpectDown(i);
  }
  Join();
  EXPECT_EQ(Move(&up, &down, 3), 3);
  EXPECT_EQ(down.endpoint.counters().inbox_tensors, 1u);
  const std::string held = up.Take();
  EXPECT_EQ(*down.Give(held), Taken::kHold);
  down.endpoint.Consumed();
  EXPECT_EQ(down.connection->reader_wakes, 1);
  EXPECT_EQ(*down.Give(held), Taken::kYes);
  Move(&up, &down);
  EXPECT_EQ(down.listener.count("tensor"), 2);
}

TEST_F(LinkEndpointTest, ATensorBeyondAHardInboxLimitIsResourceExhausted) {
  down.endpoint.SetInboxLimit(1, /*hard=*/true);
  for (std::uint32_t i = 0; i < 2; ++i) SendDown(i, Sample(i));
  ExpectDown(0);
  Join();
  EXPECT_EQ(Move(&up, &down, 3), 3);
  const std::string early = up.Take();
  EXPECT_EQ(*down.Give(early), Taken::kHold) << "one that is not expected yet breaks no window";
  ExpectDown(1);
  const absl::Status status = down.Give(early).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(status), HasSubstr("window is 1"));
  EXPECT_EQ(down.connection->closed, status);
  EXPECT_EQ(down.listener.status(), status);
  EXPECT_EQ(down.listener.count("error"), 1);
}

TEST_F(LinkEndpointTest, AnotherTensorThanExpectedEndsTheEndpoint) {
  SendDown(1, Sample(0));
  ExpectDown(0);
  Join();
  const absl::Status status = down.Give(up.Take()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(status), HasSubstr("link 1, ACTIVATION of step 1, micro-batch 0"));
  EXPECT_THAT(Text(status), HasSubstr("micro_batch is 1, expected 0"));
  EXPECT_EQ(down.connection->closed, status);
  EXPECT_THAT(down.listener.events(), ElementsAre("connected", "error"));
  const auto again = down.endpoint.Connect(std::make_shared<RecordingConnection>(), 2);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(again.status()), HasSubstr("micro_batch is 1, expected 0"));
}

TEST_F(LinkEndpointTest, BytesThatAreNoMessageEndTheEndpoint) {
  Join();
  down.endpoint.OnBadMessage(down.connection.get(), absl::InvalidArgumentError("not a LinkMessage"));
  EXPECT_EQ(down.connection->closed->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(down.listener.count("error"), 1);
}

TEST_F(LinkEndpointTest, DamageClosesTheConnectionAndTheTensorComesAgain) {
  SendDown(0, Sample(0));
  ExpectDown(0);
  Join();
  EXPECT_EQ(Move(&up, &down, 1), 1);
  std::string damaged = up.Take();
  damaged.back() ^= 1;
  EXPECT_EQ(down.Give(damaged).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(down.connection->closed->code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(down.listener.events(), ElementsAre("connected", "disconnected"));
  up.Break();
  Join(2);
  EXPECT_EQ(Move(&up, &down), 3);
  EXPECT_TRUE(Equal(down.listener.tensors().at(0).tensor, Sample(0)));
}

TEST_F(LinkEndpointTest, TheSameTensorDamagedThreeTimesIsAnError) {
  SendDown(0, Sample(0));
  SendDown(1, Sample(1));
  ExpectDown(0);
  ExpectDown(1);
  std::uint64_t seq = 0;
  const auto damage = [&] {
    Join(++seq);
    std::string damaged = up.Take();
    damaged.back() ^= 1;
    const absl::Status status = down.Give(damaged).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    up.Break();
  };
  damage();
  damage();
  Join(++seq);
  EXPECT_EQ(Move(&up, &down, 3), 3) << "the third time it is whole";
  up.Break();
  down.Break();
  damage();
  damage();
  EXPECT_EQ(down.listener.count("error"), 0) << "the next tensor counts anew";
  damage();
  EXPECT_EQ(down.listener.count("error"), 1);
  EXPECT_EQ(down.listener.status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(LinkEndpointTest, ABrokenConnectionResumesAtWholeTensors) {
  for (std::uint32_t i = 0; i < 3; ++i) {
    SendDown(i, Sample(i));
    ExpectDown(i);
  }
  Join(1);
  EXPECT_EQ(Move(&up, &down, 5), 5) << "one tensor and two chunks";
  up.Break();
  down.Break();
  EXPECT_EQ(down.listener.status().code(), absl::StatusCode::kUnavailable);
  const v1::Hello hello = down.Dial(2);
  EXPECT_EQ(hello.received_tensors(), 1u);
  Join(3);
  EXPECT_EQ(Move(&up, &down), 6);
  const std::vector<ReceivedTensor> tensors = down.listener.tensors();
  ASSERT_EQ(tensors.size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(Equal(tensors[i].tensor, Sample(i)));
}

TEST_F(LinkEndpointTest, AllSentIsSaidOnceWhenTheTransportTookTheLastMessage) {
  EXPECT_TRUE(up.endpoint.AllSent());
  SendDown(0, Sample(0));
  ExpectDown(0);
  EXPECT_FALSE(up.endpoint.AllSent());
  Join(1);
  up.Take();
  up.Take();
  ASSERT_TRUE(up.endpoint.NextMessage(up.connection.get()).has_value());
  EXPECT_FALSE(up.endpoint.AllSent());
  EXPECT_EQ(up.listener.count("all sent"), 0);
  up.endpoint.OnMessageWritten(up.connection.get());
  EXPECT_TRUE(up.endpoint.AllSent());
  EXPECT_EQ(up.listener.count("all sent"), 1);
  up.Break();
  down.Break();
  Join(2);
  EXPECT_EQ(Move(&up, &down), 3) << "the tensor was lost on the way and goes again";
  EXPECT_EQ(up.listener.count("all sent"), 1);
}

TEST_F(LinkEndpointTest, APeersHelloCanShowThatAllWasSent) {
  SendDown(0, TensorOf({1}, WireDtype::kUint8, 0));
  down.endpoint.Expect(ExpectedOf(WorkOf(v1::ACTIVATION, 1, 0), TensorOf({1}, WireDtype::kUint8, 0)));
  Join(1);
  const auto message = up.endpoint.NextMessage(up.connection.get());
  ASSERT_TRUE(down.Give(Flat(*message)).ok());
  up.Break();
  EXPECT_FALSE(up.endpoint.AllSent()) << "the connection broke before the write was said to be over";
  Join(2);
  EXPECT_TRUE(up.endpoint.AllSent());
  EXPECT_EQ(up.listener.count("all sent"), 1);
  EXPECT_EQ(Move(&up, &down), 0);
}

TEST_F(LinkEndpointTest, OnTensorMaySendExpectAndRelease) {
  down.listener.on_tensor = [&](const ReceivedTensor& received) {
    const std::uint32_t next = received.header.micro_batch() + 1;
    down.endpoint.Send(WorkOf(v1::GRADIENT, 1, next - 1), Sample(20 + next));
    up.endpoint.ReleaseMicroBatch(1, next - 1);
    if (next < 3) ExpectDown(next);
    down.endpoint.Consumed();
  };
  for (std::uint32_t i = 0; i < 3; ++i) {
    SendDown(i, Sample(i));
    up.endpoint.Expect(ExpectedOf(WorkOf(v1::GRADIENT, 1, i), Sample(0)));
  }
  ExpectDown(0);
  Join();
  EXPECT_EQ(Move(&up, &down), 9);
  EXPECT_EQ(Move(&down, &up), 9);
  EXPECT_EQ(up.listener.count("tensor"), 3);
  EXPECT_EQ(up.endpoint.retained_bytes(), 0u);
}

TEST_F(LinkEndpointTest, WhatItsOwnerGivesWronglyIsAnErrorAndNoCrash) {
  EncodedTensor tensor = Sample(0);
  tensor.dims = {8, 40001};
  SendDown(0, tensor);
  EXPECT_EQ(up.listener.status().code(), absl::StatusCode::kInternal);
  v1::TensorHeader header = ExpectedOf(WorkOf(v1::ACTIVATION, 1, 0), Sample(0));
  header.set_dims(0, -8);
  down.endpoint.Expect(header);
  EXPECT_EQ(down.listener.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(LinkEndpointTest, ShutdownClosesAndSilences) {
  SendDown(0, Sample(0));
  ExpectDown(0);
  Join();
  const std::string message = up.Take();
  const auto connection = down.connection;
  down.endpoint.Shutdown(absl::CancelledError("fence over"));
  EXPECT_EQ(*connection->closed, absl::CancelledError("fence over"));
  EXPECT_EQ(*down.Give(message), Taken::kYes);
  down.Break();
  EXPECT_THAT(down.listener.events(), ElementsAre("connected"));
  EXPECT_FALSE(down.endpoint.connected());
  EXPECT_EQ(down.endpoint.retained_bytes(), 0u);
  EXPECT_THAT(Text(down.endpoint.Connect(connection, 9).status()), HasSubstr("fence over"));
  down.endpoint.Shutdown(absl::OkStatus());  // twice is once
}

TEST_F(LinkEndpointTest, ShutdownWaitsForAListenerCallOnAnotherThread) {
  Mutex mutex;
  CondVar changed;
  bool inside = false, go_on = false, left = false;
  down.listener.on_tensor = [&](const ReceivedTensor&) {
    MutexLock lock(mutex);
    inside = true;
    changed.NotifyAll();
    while (!go_on) changed.Wait(mutex);
    left = true;
  };
  SendDown(0, TensorOf({1}, WireDtype::kUint8, 0));
  down.endpoint.Expect(ExpectedOf(WorkOf(v1::ACTIVATION, 1, 0), TensorOf({1}, WireDtype::kUint8, 0)));
  Join();
  std::thread reader([&] { Move(&up, &down); });
  {
    MutexLock lock(mutex);
    while (!inside) changed.Wait(mutex);
  }
  std::thread stopper([&] {
    down.endpoint.Shutdown(absl::CancelledError("fence over"));
    MutexLock lock(mutex);
    EXPECT_TRUE(left) << "Shutdown returned while OnTensor ran";
  });
  // Only once Shutdown has begun: its first effect is the close.
  while (down.endpoint.connected()) std::this_thread::yield();
  {
    MutexLock lock(mutex);
    go_on = true;
    changed.NotifyAll();
  }
  stopper.join();
  reader.join();
}

TEST_F(LinkEndpointTest, ShutdownInsideAListenerCallDoesNotWait) {
  down.listener.on_error = [&](const absl::Status& status) {
    down.endpoint.Shutdown(status);
    up.endpoint.Shutdown(status);
  };
  SendDown(1, Sample(0));
  ExpectDown(0);
  Join();
  EXPECT_FALSE(down.Give(up.Take()).ok());
  EXPECT_EQ(down.listener.count("error"), 1);
}

}  // namespace
}  // namespace resbm::wire
