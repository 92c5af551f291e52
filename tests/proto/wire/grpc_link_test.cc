// Two endpoints over real gRPC on loopback.
#include "proto/wire/grpc_link.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/wire/grpc_buffer.h"
#include "tests/proto/wire/loopback_link.h"
#include "tests/proto/wire/recording_link.h"
#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {
namespace {

using ::testing::HasSubstr;

class GrpcLinkTest : public ::testing::Test {
 protected:
  GrpcLinkTest() : up_(OptionsOf(v1::UPSTREAM)), down_(OptionsOf(v1::DOWNSTREAM)), server_(&directory_) {
    directory_.Add(down_.endpoint);
    dialler_ = std::make_unique<LinkDialler>(server_.address(), grpc::InsecureChannelCredentials(), up_.endpoint);
  }
  ~GrpcLinkTest() override {
    dialler_->Stop();
    server_.Stop();
  }

  static void Cross(SharedEnd* from, SharedEnd* to, v1::TensorKind kind, std::uint32_t micro_batch,
                    const EncodedTensor& tensor) {
    to->endpoint->Expect(ExpectedOf(WorkOf(kind, 1, micro_batch), tensor));
    from->endpoint->Send(WorkOf(kind, 1, micro_batch), tensor);
  }

  SharedEnd up_;
  SharedEnd down_;
  MapDirectory directory_;
  LoopbackServer server_;
  std::unique_ptr<LinkDialler> dialler_;
};

TEST(ToByteBuffer, ReferencesThePayloadAndReleasesIt) {
  const EncodedTensor tensor = TensorOf({100000}, WireDtype::kUint8, 1);
  const long before = tensor.payload.owner().use_count();
  {
    const OutgoingMessage message = EncodeChunk(FenceOf(1, 1), "header", 0, tensor.payload);
    grpc::ByteBuffer buffer = ToByteBuffer(message);
    EXPECT_EQ(buffer.Length(), message.size());
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(buffer.Dump(&slices).ok());
    ASSERT_EQ(slices.size(), 2u);
    EXPECT_EQ(static_cast<const void*>(slices[1].begin()), tensor.payload.data()) << "no copy";
    EXPECT_GT(tensor.payload.owner().use_count(), before + 1);
  }
  EXPECT_EQ(tensor.payload.owner().use_count(), before);
}

// Scenario 15.
TEST_F(GrpcLinkTest, TensorsAroundFourMegabytesCrossBothWaysInEveryDtype) {
  std::vector<EncodedTensor> tensors;
  constexpr std::int64_t kLimit = 4 * 1024 * 1024;
  for (const WireDtype dtype : {WireDtype::kUint8, WireDtype::kFloat16, WireDtype::kBfloat16, WireDtype::kFloat32,
                                WireDtype::kInt64}) {
    const std::int64_t elements = kLimit / static_cast<std::int64_t>(SizeOf(dtype));
    for (const std::int64_t n : {elements - 1, elements, elements + 1}) {
      tensors.push_back(TensorOf({1, n}, dtype, tensors.size()));
    }
  }
  tensors.push_back(TensorOf({0}, WireDtype::kUint8, 0));
  dialler_->Start();
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    Cross(&up_, &down_, v1::ACTIVATION, i, tensors[i]);
    Cross(&down_, &up_, v1::GRADIENT, i, tensors[i]);
  }
  for (SharedEnd* end : {&up_, &down_}) {
    ASSERT_TRUE(WaitForTensors(*end, static_cast<int>(tensors.size())));
    const std::vector<ReceivedTensor> received = end->listener.tensors();
    ASSERT_EQ(received.size(), tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(Equal(received[i].tensor, tensors[i])) << i;
    ASSERT_TRUE(WaitForEvent(*end, "all sent"));
    EXPECT_EQ(end->endpoint->counters().payload_bytes_resent, 0u);
  }
}

TEST_F(GrpcLinkTest, ARestartedServerIsDialledAgainAndEverythingArrivesOnce) {
  constexpr std::uint32_t kTensors = 60;
  std::vector<EncodedTensor> tensors;
  for (std::uint32_t i = 0; i < kTensors; ++i) tensors.push_back(TensorOf({300000 + i}, WireDtype::kFloat16, i));
  down_.endpoint->SetInboxLimit(4, /*hard=*/false);
  dialler_->Start();
  for (std::uint32_t i = 0; i < kTensors; ++i) {
    Cross(&up_, &down_, v1::ACTIVATION, i, tensors[i]);
    Cross(&down_, &up_, v1::GRADIENT, i, tensors[i]);
  }
  // Downward the receiver holds the sender back: the restarts fall into the middle of its tensors.
  for (std::uint32_t i = 0; i < kTensors; ++i) {
    ASSERT_TRUE(WaitForTensors(down_, static_cast<int>(i + 1)));
    if (i == 20 || i == 40) {
      server_.Stop();
      server_.Start();
    }
    down_.endpoint->Consumed();
  }
  ASSERT_TRUE(WaitForTensors(up_, kTensors));
  for (SharedEnd* end : {&up_, &down_}) {
    const std::vector<ReceivedTensor> received = end->listener.tensors();
    ASSERT_EQ(received.size(), kTensors);
    for (std::uint32_t i = 0; i < kTensors; ++i) {
      EXPECT_EQ(received[i].header.micro_batch(), i);
      EXPECT_TRUE(Equal(received[i].tensor, tensors[i])) << i;
    }
    EXPECT_EQ(end->endpoint->counters().connections, 3u);
    EXPECT_EQ(end->listener.count("error"), 0);
  }
}

TEST_F(GrpcLinkTest, AReceiverThatHoldsBacksUpTheSender) {
  constexpr std::uint32_t kTensors = 40;
  const EncodedTensor tensor = TensorOf({1024 * 1024}, WireDtype::kUint8, 3);
  down_.endpoint->SetInboxLimit(1, /*hard=*/false);
  dialler_->Start();
  for (std::uint32_t i = 0; i < kTensors; ++i) Cross(&up_, &down_, v1::ACTIVATION, i, tensor);
  ASSERT_TRUE(WaitForTensors(down_, 1));
  // What the sockets and gRPC's windows take, but not all 40 MB.
  EXPECT_FALSE(up_.endpoint->AllSent());
  EXPECT_EQ(down_.endpoint->counters().tensors_received, 1u);
  for (std::uint32_t i = 1; i < kTensors; ++i) {
    down_.endpoint->Consumed();
    ASSERT_TRUE(WaitForTensors(down_, static_cast<int>(i + 1)));
    EXPECT_LE(down_.endpoint->counters().inbox_tensors, 1u);
  }
  ASSERT_TRUE(WaitForEvent(up_, "all sent"));
}

TEST_F(GrpcLinkTest, AHelloIsHeldUntilTheDirectoryKnowsItsFence) {
  directory_.Hold();
  dialler_->Start();
  const EncodedTensor tensor = TensorOf({10}, WireDtype::kUint8, 3);
  Cross(&up_, &down_, v1::ACTIVATION, 0, tensor);
  directory_.Release(1);
  EXPECT_TRUE(WaitForTensors(down_, 1));
}

TEST_F(GrpcLinkTest, AnUnreachablePeerIsNamedAndDialledUntilItIsThere) {
  server_.Stop();
  dialler_->Start();
  ASSERT_TRUE(WaitForEvent(up_, "disconnected", 2));
  EXPECT_EQ(up_.listener.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(up_.listener.status().message()), HasSubstr(server_.address()));
  server_.Start();
  const EncodedTensor tensor = TensorOf({10}, WireDtype::kUint8, 3);
  Cross(&up_, &down_, v1::ACTIVATION, 0, tensor);
  EXPECT_TRUE(WaitForTensors(down_, 1));
}

TEST_F(GrpcLinkTest, StopEndsTheStreamAndAnotherDiallerGoesOn) {
  const EncodedTensor tensor = TensorOf({10}, WireDtype::kUint8, 3);
  dialler_->Start();
  Cross(&up_, &down_, v1::ACTIVATION, 0, tensor);
  ASSERT_TRUE(WaitForTensors(down_, 1));
  dialler_->Stop();
  ASSERT_TRUE(WaitForEvent(up_, "disconnected"));
  ASSERT_TRUE(WaitForEvent(down_, "disconnected"));
  EXPECT_FALSE(up_.endpoint->connected());
  dialler_->Start();
  LinkDialler again(server_.address(), grpc::InsecureChannelCredentials(), up_.endpoint);
  again.Start();
  Cross(&up_, &down_, v1::ACTIVATION, 1, tensor);
  EXPECT_TRUE(WaitForTensors(down_, 2));
  EXPECT_EQ(up_.endpoint->counters().connections, 2u) << "a stopped dialler stays stopped";
}

TEST_F(GrpcLinkTest, StopReturnsWhileAMessageIsHeldAndOthersWaitBehindIt) {
  dialler_->Start();
  const EncodedTensor tensor = TensorOf({2000000}, WireDtype::kUint8, 3);
  // Nobody expects them.
  for (std::uint32_t i = 0; i < 5; ++i) down_.endpoint->Send(WorkOf(v1::GRADIENT, 1, i), tensor);
  ASSERT_TRUE(WaitForEvent(up_, "connected"));
  dialler_->Stop();
  EXPECT_TRUE(WaitForEvent(down_, "disconnected"));
  EXPECT_EQ(up_.listener.status().code(), absl::StatusCode::kCancelled);
}

TEST_F(GrpcLinkTest, ALostServerIsNoticedWhileAMessageIsHeld) {
  dialler_->Start();
  const EncodedTensor tensor = TensorOf({2000000}, WireDtype::kUint8, 3);
  for (std::uint32_t i = 0; i < 2; ++i) down_.endpoint->Send(WorkOf(v1::GRADIENT, 1, i), tensor);
  ASSERT_TRUE(WaitForEvent(up_, "connected"));
  server_.Stop();
  ASSERT_TRUE(WaitForEvent(up_, "disconnected"));
  EXPECT_EQ(up_.listener.status().code(), absl::StatusCode::kUnavailable);
  server_.Start();
  ASSERT_TRUE(WaitForEvent(up_, "connected", 2));
  for (std::uint32_t i = 0; i < 2; ++i) up_.endpoint->Expect(ExpectedOf(WorkOf(v1::GRADIENT, 1, i), tensor));
  ASSERT_TRUE(WaitForTensors(up_, 2));
  EXPECT_TRUE(Equal(up_.listener.tensors()[1].tensor, tensor));
}

TEST_F(GrpcLinkTest, StopDuringThePauseBetweenDialsReturnsAtOnce) {
  server_.Stop();
  dialler_->Start();
  ASSERT_TRUE(WaitForEvent(up_, "disconnected", 3));
  dialler_->Stop();
  const int dials = up_.listener.count("disconnected");
  EXPECT_GE(dials, 3);
  EXPECT_EQ(up_.listener.count("connected"), 0);
}

TEST_F(GrpcLinkTest, TheEndOfAnEndpointReachesThePeerAndEndsTheDialling) {
  dialler_->Start();
  ASSERT_TRUE(WaitForEvent(up_, "connected"));
  // The wrong tensor.
  const EncodedTensor tensor = TensorOf({10}, WireDtype::kUint8, 3);
  down_.endpoint->Expect(ExpectedOf(WorkOf(v1::ACTIVATION, 1, 5), tensor));
  up_.endpoint->Send(WorkOf(v1::ACTIVATION, 1, 0), tensor);
  ASSERT_TRUE(WaitForEvent(down_, "error"));
  ASSERT_TRUE(WaitForEvent(up_, "disconnected"));
  const std::string message(up_.listener.status().message());
  EXPECT_EQ(up_.listener.status().code(), absl::StatusCode::kInvalidArgument) << message;
  EXPECT_THAT(message, HasSubstr("micro_batch is 0, expected 5"));
  // The dead end refuses the next dial and says why: there is no further one.
  ASSERT_TRUE(WaitForEvent(up_, "error"));
  EXPECT_EQ(up_.listener.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(up_.listener.status().message()), HasSubstr("micro_batch is 0, expected 5"));
}

// With the key, and with the highest number there is.
TEST_F(GrpcLinkTest, ADiallerGoesOnAfterSomebodyElseDialledItsEnd) {
  dialler_->Start();
  ASSERT_TRUE(WaitForEvent(up_, "connected"));
  ASSERT_TRUE(up_.endpoint->Connect(std::make_shared<RecordingConnection>(), ~std::uint64_t{0}).ok());
  ASSERT_TRUE(WaitForEvent(up_, "connected", 2));
  const EncodedTensor tensor = TensorOf({10}, WireDtype::kUint8, 3);
  Cross(&up_, &down_, v1::ACTIVATION, 0, tensor);
  EXPECT_TRUE(WaitForTensors(down_, 1));
}

// As a stage whose evaluation kept no more than it may.
TEST_F(GrpcLinkTest, APeerThatWantsAReleasedTensorEndsBothEndsWithTheReason) {
  // The receiver is one that has lost what it had: another endpoint in its place.
  const EncodedTensor tensor = TensorOf({10}, WireDtype::kUint8, 3);
  Cross(&up_, &down_, v1::ACTIVATION, 0, tensor);
  dialler_->Start();
  ASSERT_TRUE(WaitForTensors(down_, 1));
  up_.endpoint->ReleaseAll();
  SharedEnd forgetful(OptionsOf(v1::DOWNSTREAM));
  directory_.Add(forgetful.endpoint);
  server_.Stop();
  server_.Start();
  ASSERT_TRUE(WaitForEvent(up_, "error"));
  EXPECT_EQ(up_.listener.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(up_.listener.status().message()), HasSubstr("wants tensor 0, which was released"));

  // The other way round the acceptor knows, and the dialler hears it.
  SharedEnd dials(OptionsOf(v1::DOWNSTREAM));
  SharedEnd knows(OptionsOf(v1::UPSTREAM));
  directory_.Add(knows.endpoint);
  {
    LinkDialler first(server_.address(), grpc::InsecureChannelCredentials(), dials.endpoint);
    first.Start();
    Cross(&knows, &dials, v1::ACTIVATION, 0, tensor);
    ASSERT_TRUE(WaitForTensors(dials, 1));
    ASSERT_TRUE(WaitForEvent(knows, "all sent"));
  }
  knows.endpoint->ReleaseAll();
  SharedEnd lost(OptionsOf(v1::DOWNSTREAM));
  LinkDialler second(server_.address(), grpc::InsecureChannelCredentials(), lost.endpoint);
  second.Start();
  ASSERT_TRUE(WaitForEvent(knows, "error"));
  ASSERT_TRUE(WaitForEvent(lost, "error"));
  EXPECT_THAT(std::string(lost.listener.status().message()), HasSubstr("wants tensor 0, which was released"));
  second.Stop();
  EXPECT_EQ(lost.listener.count("connected"), 0);
}

TEST(GrpcServer, ATakenPortIsAnError) {
  MapDirectory directory;
  LoopbackServer first(&directory);
  grpc::ServerBuilder builder;
  ConfigureServer(builder);
  builder.AddListeningPort(first.address(), grpc::InsecureServerCredentials());
  EXPECT_EQ(builder.BuildAndStart(), nullptr);
}

}  // namespace
}  // namespace resbm::wire
