// A stage server in this process: real gRPC on loopback around a Stage with a fake Computer.
#ifndef RESBM_TESTS_STAGE_SERVER_GRPC_SERVER_FIXTURE_H_
#define RESBM_TESTS_STAGE_SERVER_GRPC_SERVER_FIXTURE_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "proto/resbm/v1/control.grpc.pb.h"
#include "proto/wire/grpc_link.h"
#include "stage_server/grpc/control_service.h"
#include "stage_server/grpc/link_adapters.h"
#include "stage_server/host/stage.h"
#include "tests/stage_server/support/fake_computer.h"
#include "tests/stage_server/support/specs.h"

namespace resbm::stage_server::testing {

class InProcessServer {
 public:
  InProcessServer()
      : diallers_(grpc::InsecureChannelCredentials()),
        stage_(Options(), Clock::Real(), std::make_unique<FakeComputer>(), &diallers_),
        directory_(&stage_),
        control_(&stage_, Identity()),
        links_(wire::MakeLinkService(&directory_)) {
    grpc::ServerBuilder builder;
    wire::ConfigureServer(builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&control_);
    builder.RegisterService(links_.get());
    server_ = builder.BuildAndStart();
  }
  ~InProcessServer() { Stop(); }

  void Stop() {
    if (server_ == nullptr) return;
    stage_.Shutdown(absl::UnavailableError("the stage server stops"));
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(30));
    server_.reset();
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  Stage& stage() { return stage_; }

 private:
  static StageOptions Options() {
    StageOptions options;
    options.machine.incarnation = 4711;
    options.machine.progress_interval = absl::Milliseconds(1);
    options.tick = absl::Milliseconds(1);
    return options;
  }
  static v1::DescribeReply Identity() {
    v1::DescribeReply identity;
    identity.set_incarnation(4711);
    identity.set_device("cpu");
    return identity;
  }

  GrpcDiallers diallers_;
  Stage stage_;
  StageLinkDirectory directory_;
  ControlService control_;
  std::unique_ptr<grpc::Service> links_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// One control stream of a coordinator, driven by hand.
class Coordinator {
 public:
  explicit Coordinator(const std::string& address)
      : channel_(wire::MakeChannel(address, grpc::InsecureChannelCredentials())),
        stub_(v1::StageControl::NewStub(channel_)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    stream_ = stub_->Session(&context_);
  }
  ~Coordinator() {
    if (stream_ == nullptr) return;
    context_.TryCancel();
    stream_->Finish();
  }

  void Send(v1::ControlRequest request) {
    *request.mutable_fence() = fence;
    stream_->Write(request);
  }
  void Attach(std::uint64_t epoch, std::uint32_t stages = 1) {
    fence = MakeFence(epoch, 1);
    v1::ControlRequest request;
    *request.mutable_attach() = MakeAttach(0, stages);
    Send(request);
  }
  // The next event that is not Progress; of no kind when the stream is over.
  v1::ControlEvent Next() {
    v1::ControlEvent event;
    while (stream_->Read(&event)) {
      if (!event.has_progress()) return event;
    }
    return v1::ControlEvent();
  }
  // Half-closes and returns how the stage ended the stream.
  grpc::Status Finish() {
    stream_->WritesDone();
    v1::ControlEvent event;
    while (stream_->Read(&event)) {
    }
    const grpc::Status status = stream_->Finish();
    stream_.reset();
    return status;
  }
  v1::StageControl::Stub& stub() { return *stub_; }
  std::shared_ptr<grpc::Channel> channel() { return channel_; }

  v1::Fence fence;

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::StageControl::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ControlRequest, v1::ControlEvent>> stream_;
};

}  // namespace resbm::stage_server::testing

#endif  // RESBM_TESTS_STAGE_SERVER_GRPC_SERVER_FIXTURE_H_
