// The services over real gRPC, one stage that is first and last at once.
#include "stage_server/grpc/control_service.h"

#include <cstring>

#include <gtest/gtest.h>

#include "stage_server/core/shard.h"
#include "tests/stage_server/grpc/server_fixture.h"

namespace resbm::stage_server::testing {
namespace {

v1::DescribeReply Describe(Coordinator& coordinator) {
  grpc::ClientContext context;
  v1::DescribeReply reply;
  EXPECT_TRUE(coordinator.stub().Describe(&context, v1::DescribeRequest(), &reply).ok());
  return reply;
}

void MakeReady(Coordinator& coordinator) {
  coordinator.Attach(1);
  ASSERT_TRUE(coordinator.Next().has_attached());
  v1::ControlRequest request;
  *request.mutable_resume() = MakeInit(MakeSpec(0, 1));
  coordinator.Send(request);
  ASSERT_TRUE(coordinator.Next().has_ready());
}

TEST(ControlService, DescribesWhatNeverChangesAndWhatDoes) {
  InProcessServer server;
  Coordinator coordinator(server.address());
  v1::DescribeReply reply = Describe(coordinator);
  EXPECT_EQ(reply.incarnation(), 4711u);
  EXPECT_EQ(reply.device(), "cpu");
  EXPECT_EQ(reply.state(), "EMPTY");
  MakeReady(coordinator);
  reply = Describe(coordinator);
  EXPECT_EQ(reply.state(), "READY");
  EXPECT_EQ(reply.job_id(), "job-a");
  EXPECT_EQ(reply.fence().epoch(), 1u);
}

TEST(ControlService, ReleaseEndsTheStreamOk) {
  InProcessServer server;
  Coordinator coordinator(server.address());
  MakeReady(coordinator);
  v1::ControlRequest request;
  request.mutable_release();
  coordinator.Send(request);
  EXPECT_TRUE(coordinator.Finish().ok());
  EXPECT_EQ(Describe(coordinator).job_id(), "");
}

TEST(ControlService, AStreamThatEndsWithoutReleaseLeavesTheJobItsStage) {
  InProcessServer server;
  Coordinator first(server.address());
  MakeReady(first);
  EXPECT_TRUE(first.Finish().ok());
  Coordinator second(server.address());
  EXPECT_EQ(Describe(second).job_id(), "job-a");
  second.Attach(2);
  const v1::ControlEvent attached = second.Next();
  EXPECT_EQ(attached.attached().state_id(), 100u);
}

TEST(ControlService, ATakeoverEndsTheOlderStreamAndARefusalDoesNot) {
  InProcessServer server;
  Coordinator first(server.address());
  MakeReady(first);
  Coordinator second(server.address());
  second.Attach(1);
  EXPECT_TRUE(second.Next().has_refused());
  second.Attach(2);
  EXPECT_TRUE(second.Next().has_attached());
  EXPECT_EQ(first.Finish().error_code(), grpc::StatusCode::ABORTED);
}

TEST(ControlService, AMessageOfNoKindIsInvalid) {
  InProcessServer server;
  Coordinator coordinator(server.address());
  coordinator.Send(v1::ControlRequest());
  EXPECT_EQ(coordinator.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(ControlService, AStoppedServerEndsStreamsWithUnavailable) {
  InProcessServer server;
  Coordinator coordinator(server.address());
  MakeReady(coordinator);
  server.Stop();
  EXPECT_EQ(coordinator.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(ControlService, WeightsGoOutInPiecesAndComeBackIn) {
  InProcessServer server;
  Coordinator coordinator(server.address());
  MakeReady(coordinator);
  std::string shard;
  std::uint64_t hash = 0;
  do {
    v1::GetShardRequest get;
    get.set_job_id("job-a");
    *get.mutable_fence() = coordinator.fence;
    get.set_state_id(100);
    get.set_offset(shard.size());
    get.set_max_bytes(3);
    grpc::ClientContext context;
    v1::GetShardReply reply;
    const grpc::Status status = coordinator.stub().GetShard(&context, get, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(reply.total_bytes(), 8u);
    shard += reply.data();
    hash = reply.hash();
  } while (shard.size() < 8);
  EXPECT_EQ(hash, ShardHash(shard));

  coordinator.fence = MakeFence(2, 1);
  v1::ControlRequest request;
  *request.mutable_attach() = MakeAttach(0, 1);
  coordinator.Send(request);
  ASSERT_TRUE(coordinator.Next().has_attached());
  request.Clear();
  *request.mutable_resume() = MakeInit(MakeSpec(0, 1), 200);
  request.mutable_resume()->mutable_restore()->set_bytes(shard.size());
  request.mutable_resume()->mutable_restore()->set_hash(hash);
  coordinator.Send(request);
  v1::PutShardRequest put;
  put.set_job_id("job-a");
  *put.mutable_fence() = coordinator.fence;
  put.set_data(shard);
  v1::PutShardReply reply;
  // The stream and this call race: it may be early.
  grpc::Status status;
  do {
    grpc::ClientContext context;
    status = coordinator.stub().PutShard(&context, put, &reply);
  } while (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.received_bytes(), 8u);
  EXPECT_EQ(coordinator.Next().ready().state_id(), 200u);
}

// The coordinator's end of an outer link.
struct Feed : wire::LinkEndpoint::Listener {
  Feed(const Coordinator& coordinator, const std::string& address, std::uint32_t link) {
    wire::LinkEndpoint::Options options;
    options.job_id = "job-a";
    options.fence = coordinator.fence;
    options.link_key = "0123456789abcdef";
    options.link = link;
    options.side = link == 0 ? v1::UPSTREAM : v1::DOWNSTREAM;
    endpoint = std::make_shared<wire::LinkEndpoint>(options, this);
    dialler = std::make_unique<wire::LinkDialler>(address, grpc::InsecureChannelCredentials(), endpoint);
    dialler->Start();
  }
  ~Feed() override {
    dialler->Stop();
    endpoint->Shutdown(absl::CancelledError("over"));
  }
  void Send(v1::TensorKind kind, EncodedTensor tensor, std::uint64_t step) {
    v1::TensorHeader header;
    header.set_kind(kind);
    header.set_step(step);
    header.set_tensor_count(1);
    endpoint->Send(header, std::move(tensor));
  }
  void OnTensor(wire::ReceivedTensor) override {}
  void OnAllSent() override {}
  void OnConnected() override {}
  void OnDisconnected(const absl::Status&) override {}
  void OnError(const absl::Status& status) override { ADD_FAILURE() << status; }

  std::shared_ptr<wire::LinkEndpoint> endpoint;
  std::unique_ptr<wire::LinkDialler> dialler;
};

TEST(ControlService, AStepGoesFromBeginToCommittedOverRealLinks) {
  InProcessServer server;
  Coordinator coordinator(server.address());
  // Dialled before the fence is attached: the stage lets it wait.
  coordinator.fence = MakeFence(1, 1);
  Feed inputs(coordinator, server.address(), 0);
  Feed targets(coordinator, server.address(), 1);
  MakeReady(coordinator);
  v1::ControlRequest request;
  *request.mutable_define_program() = MakeProgram(1, "F0 B0", 1);
  coordinator.Send(request);
  request.Clear();
  *request.mutable_begin() = MakeBegin(coordinator.fence, 1, 100, 1, {2});
  coordinator.Send(request);
  EncodedTensor images;
  images.codec = WireCodec::kRaw;
  images.dtype = WireDtype::kUint8;
  images.dims = {2, kWidth};
  images.payload = SharedBytes::CopyOf("8 pixels");
  inputs.Send(v1::INPUT, images, 1);
  EncodedTensor labels;
  labels.codec = WireCodec::kRaw;
  labels.dtype = WireDtype::kInt64;
  labels.dims = {2};
  labels.payload = SharedBytes::CopyOf(std::string(16, '\0'));
  targets.Send(v1::TARGET, labels, 1);
  const v1::ControlEvent computed = coordinator.Next();
  ASSERT_TRUE(computed.has_computed()) << computed.ShortDebugString();
  EXPECT_EQ(computed.computed().weight(), 2);
  request.Clear();
  *request.mutable_commit() = MakeCommit(coordinator.fence, 1, 100, 101);
  coordinator.Send(request);
  EXPECT_EQ(coordinator.Next().committed().state_id(), 101u);
}

}  // namespace
}  // namespace resbm::stage_server::testing
