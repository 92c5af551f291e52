// What an endpoint counts: for reports, and as the sign that a slow link is alive.
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "proto/wire/link_endpoint.h"
#include "tests/proto/wire/recording_link.h"
#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {
namespace {

// Three chunks.
EncodedTensor Sample(std::uint64_t seed) { return TensorOf({8, 40000}, WireDtype::kFloat16, seed); }

class LinkCountersTest : public ::testing::Test, protected Ends {
 protected:
  void SendDown(std::uint32_t micro_batch, const EncodedTensor& tensor) {
    up.endpoint.Send(WorkOf(v1::ACTIVATION, 1, micro_batch), tensor);
  }
  void ExpectDown(std::uint32_t micro_batch) {
    down.endpoint.Expect(ExpectedOf(WorkOf(v1::ACTIVATION, 1, micro_batch), Sample(0)));
  }
};

TEST_F(LinkCountersTest, CountersSayWhatCrossed) {
  SendDown(0, Sample(0));
  ExpectDown(0);
  Join(1);
  const auto hello_bytes = [](std::uint64_t seq) {
    return 5 + Flat(*End(v1::UPSTREAM).endpoint.Connect(std::make_shared<RecordingConnection>(), seq)).size();
  };
  std::uint64_t metadata = hello_bytes(1);
  for (int i = 0; i < 2; ++i) metadata += up.Take().size() + 5;
  up.Break();
  down.Break();
  metadata += hello_bytes(2);
  Join(2);
  for (int i = 0; i < 3; ++i) {
    const std::string message = up.Take();
    metadata += message.size() + 5;
    ASSERT_TRUE(down.Give(message).ok());
  }
  const LinkEndpoint::Counters sent = up.endpoint.counters();
  EXPECT_EQ(sent.tensors_sent, 1u);
  EXPECT_EQ(sent.messages_sent, 7u);
  EXPECT_EQ(sent.payload_bytes_resent, 2 * kChunkBytes);
  EXPECT_EQ(sent.payload_bytes_sent, 640000 + 2 * kChunkBytes);
  EXPECT_EQ(sent.metadata_bytes_sent, metadata - sent.payload_bytes_sent);
  EXPECT_EQ(sent.connections, 2u);
  EXPECT_EQ(down.endpoint.counters().tensors_received, 1u);
  EXPECT_EQ(down.endpoint.counters().inbox_tensors, 1u);
}

TEST_F(LinkCountersTest, ReceivedBytesGrowWithEveryChunkAndCountNoneTwice) {
  SendDown(0, Sample(0));
  SendDown(1, Sample(1));
  ExpectDown(0);
  ExpectDown(1);
  const auto received = [this] { return down.endpoint.counters().payload_bytes_received; };
  Join(1);
  EXPECT_EQ(received(), 0u);
  Move(&up, &down, 1);
  EXPECT_EQ(received(), kChunkBytes) << "of a tensor that is not whole yet";
  Move(&up, &down, 1);
  EXPECT_EQ(received(), 2 * kChunkBytes);
  up.Break();
  down.Break();
  EXPECT_EQ(received(), 2 * kChunkBytes);
  Join(2);
  Move(&up, &down, 2);
  EXPECT_EQ(received(), 2 * kChunkBytes) << "what came before comes again";
  Move(&up, &down, 1);
  EXPECT_EQ(received(), 640000u);
  Move(&up, &down, 1);
  EXPECT_EQ(received(), 640000 + kChunkBytes);
  Move(&up, &down);
  EXPECT_EQ(received(), 2 * 640000u);
  const LinkEndpoint::Counters sent = up.endpoint.counters();
  EXPECT_EQ(sent.payload_bytes_sent - sent.payload_bytes_resent, received());
}

}  // namespace
}  // namespace resbm::wire
