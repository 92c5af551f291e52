// What a peer gets that does not belong, or does not speak the protocol; others go on (scenarios 22, 23).
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "proto/resbm/v1/link.grpc.pb.h"
#include "proto/wire/grpc_link.h"
#include "proto/wire/grpc_status.h"
#include "tests/proto/wire/loopback_link.h"
#include "tests/proto/wire/recording_link.h"
#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A stream that sends what it is told, byte for byte. For one thread; a step that fails ends the stream.
class RawStream {
 public:
  explicit RawStream(const std::string& address)
      : stub_(MakeChannel(address, grpc::InsecureChannelCredentials())),
        stream_(stub_.PrepareCall(&context_, "/resbm.v1.StageLink/Exchange", &queue_)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    stream_->StartCall(this);
    Next();
  }
  ~RawStream() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  void Write(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    stream_->Write(grpc::ByteBuffer(&slice, 1), this);
    Next();
  }
  void Write(const v1::Hello& hello) { Write(Flat(EncodeHello(hello))); }
  // Of the peer's Hello.
  v1::Hello ReadHello() {
    grpc::ByteBuffer buffer;
    stream_->Read(&buffer, this);
    if (!Next()) return v1::Hello();
    grpc::Slice slice;
    EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
    v1::LinkMessage message;
    EXPECT_TRUE(message.ParseFromArray(slice.begin(), static_cast<int>(slice.size())));
    EXPECT_TRUE(message.has_hello());
    return message.hello();
  }
  // How the peer ended it.
  absl::Status Finish() {
    grpc::Status status;
    stream_->Finish(&status, this);
    Next();
    return FromGrpc(status);
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

class GrpcStrangerTest : public ::testing::Test {
 protected:
  GrpcStrangerTest()
      : up_(OptionsOf(v1::UPSTREAM)),
        down_(OptionsOf(v1::DOWNSTREAM)),
        other_(OptionsOf(v1::DOWNSTREAM, 2)),
        server_(&directory_) {
    directory_.Add(down_.endpoint);
    directory_.Add(other_.endpoint);
    hello_.set_protocol_version(kProtocolVersion);
    hello_.set_job_id("job");
    *hello_.mutable_fence() = FenceOf(3, 2);
    hello_.set_link_key("0123456789abcdef");
    hello_.set_link(2);
    hello_.set_side(v1::UPSTREAM);
    hello_.set_dial_seq(1);
  }
  // A good link beside the strangers: it must carry tensors before and after.
  void StartGoodLink() {
    dialler_ = std::make_unique<LinkDialler>(server_.address(), grpc::InsecureChannelCredentials(), up_.endpoint);
    dialler_->Start();
    CrossGoodLink();
  }
  void CrossGoodLink() {
    const EncodedTensor tensor = TensorOf({1000000}, WireDtype::kUint8, crossed_);
    down_.endpoint->Expect(ExpectedOf(WorkOf(v1::ACTIVATION, 1, crossed_), tensor));
    up_.endpoint->Send(WorkOf(v1::ACTIVATION, 1, crossed_), tensor);
    ASSERT_TRUE(WaitForTensors(down_, static_cast<int>(++crossed_)));
    EXPECT_TRUE(Equal(down_.listener.tensors().back().tensor, tensor));
    EXPECT_EQ(down_.endpoint->counters().connections, 1u);
  }
  absl::Status EndOf(const v1::Hello& hello) {
    RawStream stream(server_.address());
    stream.Write(hello);
    EXPECT_EQ(stream.ReadHello().protocol_version(), 0u) << "no Hello for a stranger";
    return stream.Finish();
  }

  SharedEnd up_;
  SharedEnd down_;
  SharedEnd other_;
  MapDirectory directory_;
  LoopbackServer server_;
  std::unique_ptr<LinkDialler> dialler_;
  v1::Hello hello_;
  std::uint32_t crossed_ = 0;
};

TEST_F(GrpcStrangerTest, WhoBelongsIsGreeted) {
  RawStream stream(server_.address());
  stream.Write(hello_);
  const v1::Hello answer = stream.ReadHello();
  EXPECT_EQ(answer.protocol_version(), kProtocolVersion);
  EXPECT_EQ(answer.side(), v1::DOWNSTREAM);
  EXPECT_EQ(answer.link(), 2u);
  EXPECT_EQ(answer.dial_seq(), 1u);
  EXPECT_TRUE(WaitForEvent(other_, "connected"));
}

TEST_F(GrpcStrangerTest, AnotherProtocolVersionIsToldBothVersions) {
  hello_.set_protocol_version(kProtocolVersion + 1);
  hello_.set_job_id("what this says is not looked at");
  const absl::Status status = EndOf(hello_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("protocol version 2"), HasSubstr("this end 1")));
}

TEST_F(GrpcStrangerTest, AWrongKeyJobFenceSideOrLinkIsRefusedAndTheGoodLinkGoesOn) {
  StartGoodLink();
  const auto refusal = [&](auto change) {
    v1::Hello hello = hello_;
    hello.set_link(1);
    hello.set_dial_seq(99);  // would replace the good link's
    change(&hello);
    const absl::Status status = EndOf(hello);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal([](auto* h) { h->set_link_key("fedcba9876543210"); }),
              AllOf(HasSubstr("link key"), Not(HasSubstr("0123456789abcdef"))));
  EXPECT_THAT(refusal([](auto* h) { h->set_job_id("other"); }), HasSubstr("job other, this end has job"));
  EXPECT_THAT(refusal([](auto* h) { *h->mutable_fence() = FenceOf(3, 1); }), HasSubstr("fence 3.1, this end has 3.2"));
  EXPECT_THAT(refusal([](auto* h) { h->set_side(v1::DOWNSTREAM); }), HasSubstr("side"));
  EXPECT_THAT(refusal([](auto* h) { h->set_link(7); }), HasSubstr("no link 7"));
  CrossGoodLink();
  dialler_->Stop();
}

TEST_F(GrpcStrangerTest, MalformedBytesAreInvalidAndOtherStreamsGoOn) {
  StartGoodLink();
  for (const std::string& bytes : {std::string("\xff\xff\xff\xff"), std::string(), std::string(100000, '\0'),
                                   Flat(EncodeChunk(FenceOf(3, 2), "h", 0, SharedBytes()))}) {
    RawStream stream(server_.address());
    stream.Write(bytes);
    EXPECT_EQ(stream.Finish().code(), absl::StatusCode::kInvalidArgument) << bytes.size();
  }
  EXPECT_EQ(other_.listener.events().size(), 0u);
  {
    RawStream stream(server_.address());
    stream.Write(hello_);
    EXPECT_EQ(stream.ReadHello().link(), 2u);
    stream.Write("\x12\xff");
    EXPECT_EQ(stream.Finish().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(WaitForEvent(other_, "error"));
    EXPECT_EQ(other_.listener.status().code(), absl::StatusCode::kInvalidArgument);
  }
  CrossGoodLink();
  dialler_->Stop();
}

TEST_F(GrpcStrangerTest, AMessageOverTheSizeLimitEndsItsStreamAlone) {
  StartGoodLink();
  RawStream stream(server_.address());
  stream.Write(std::string(4 * 1024 * 1024 + 1, 'x'));
  EXPECT_FALSE(stream.Finish().ok());
  CrossGoodLink();
  dialler_->Stop();
}

TEST_F(GrpcStrangerTest, ASecondHelloIsInvalid) {
  RawStream stream(server_.address());
  stream.Write(hello_);
  stream.ReadHello();
  stream.Write(hello_);
  EXPECT_EQ(stream.Finish().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(GrpcStrangerTest, AnOlderDialIsRefusedAndANewerOneReplaces) {
  hello_.set_dial_seq(5);
  RawStream first(server_.address());
  first.Write(hello_);
  EXPECT_EQ(first.ReadHello().dial_seq(), 5u);
  hello_.set_dial_seq(4);
  EXPECT_THAT(std::string(EndOf(hello_).message()), HasSubstr("dial 4 is older than dial 5"));
  hello_.set_dial_seq(6);
  RawStream second(server_.address());
  second.Write(hello_);
  EXPECT_EQ(second.ReadHello().dial_seq(), 6u);
  const absl::Status replaced = first.Finish();
  EXPECT_EQ(replaced.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(replaced.message()), HasSubstr("replaced by dial 6"));
}

TEST_F(GrpcStrangerTest, AStreamWithoutAHelloEnds) {
  LoopbackServer impatient(&directory_, absl::Milliseconds(20));
  RawStream stream(impatient.address());
  const absl::Status status = stream.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no Hello within 20ms"));
}

}  // namespace
}  // namespace resbm::wire
