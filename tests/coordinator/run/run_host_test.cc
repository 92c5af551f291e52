// A run whose weights do not get to a stage: over real gRPC, with stage servers that only answer.
#include "coordinator/run/run_host.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "coordinator/run/fleet.h"
#include "coordinator/run/run_setup.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "proto/resbm/v1/control.grpc.pb.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::coordinator {
namespace {

// Attaches, and then takes the first piece of its weights for ever.
class DeafStage : public v1::StageControl::WithCallbackMethod_PutShard<v1::StageControl::Service> {
 public:
  DeafStage() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~DeafStage() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // Says this when it gets the Resume, instead of waiting for weights. Set before the run.
  void FailOnResume(const std::string& text) { text_ = text; }
  void WaitForPiece() {
    MutexLock lock(mutex_);
    while (pieces_ == 0) changed_.Wait(mutex_);
  }

 private:
  class Piece : public grpc::ServerUnaryReactor {
   public:
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }
  };

  grpc::Status Describe(grpc::ServerContext*, const v1::DescribeRequest*, v1::DescribeReply* reply) override {
    reply->set_min_protocol_version(wire::kProtocolVersion);
    reply->set_max_protocol_version(wire::kProtocolVersion);
    return grpc::Status::OK;
  }
  grpc::Status Session(grpc::ServerContext*,
                       grpc::ServerReaderWriter<v1::ControlEvent, v1::ControlRequest>* stream) override {
    v1::ControlRequest request;
    while (stream->Read(&request)) {
      v1::ControlEvent event;
      *event.mutable_fence() = request.fence();
      if (request.has_attach()) {
        event.mutable_attached()->set_protocol_version(wire::kProtocolVersion);
        stream->Write(event);
      } else if (request.has_resume() && !text_.empty()) {
        event.mutable_failed()->set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
        event.mutable_failed()->set_phase("LOADING");
        event.mutable_failed()->set_text(text_);
        stream->Write(event);
      } else if (request.has_release()) {
        break;
      }
    }
    return grpc::Status::OK;
  }
  grpc::ServerUnaryReactor* PutShard(grpc::CallbackServerContext*, const v1::PutShardRequest*,
                                     v1::PutShardReply*) override {
    MutexLock lock(mutex_);
    ++pieces_;
    changed_.NotifyAll();
    return new Piece;
  }

  int port_ = 0;
  std::string text_;
  Mutex mutex_;
  CondVar changed_;
  int pieces_ RESBM_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<grpc::Server> server_;
};

class NoObserver : public RunObserver {
 public:
  absl::Status OnStep(const StepReport&) override { return absl::OkStatus(); }
  absl::Status OnEvaluation(const EvaluationReport&) override { return absl::OkStatus(); }
  void OnProgress(int, const v1::Progress&) override {}
};

class RunHostTest : public ::testing::Test {
 protected:
  RunHostTest() {
    setup_.plan.job_id = "job";
    setup_.plan.stages.resize(2);
    setup_.plan.restore.resize(2);
    auto fleet = Fleet::Connect({stages_[0].address(), stages_[1].address()}, absl::Seconds(30));
    EXPECT_TRUE(fleet.ok()) << fleet.status();
    fleet_ = *std::move(fleet);
    host_ = std::make_unique<RunHost>(&setup_, fleet_.get(), std::vector<std::string>(2, "weights"), &observer_);
  }
  absl::Status Run() {
    const absl::Duration began = Clock::Real().Now();
    const absl::Status result = host_->Run();
    // A piece may take a minute, and a load ten.
    EXPECT_LT(Clock::Real().Now() - began, absl::Seconds(30));
    return result;
  }

  DeafStage stages_[2];
  RunSetup setup_;
  NoObserver observer_;
  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<RunHost> host_;
};

TEST_F(RunHostTest, AnInterruptEndsTheRunWhileWeightsAreOnTheirWay) {
  std::thread user([this] {
    for (DeafStage& stage : stages_) stage.WaitForPiece();
    host_->Interrupt();
  });
  EXPECT_TRUE(Run().ok());
  EXPECT_TRUE(host_->driver().interrupted());
  user.join();
  host_->Release();
}

TEST_F(RunHostTest, AStopEndsTheRunWhileWeightsAreOnTheirWay) {
  std::thread user([this] {
    stages_[0].WaitForPiece();
    host_->Stop();
  });
  EXPECT_TRUE(absl::IsCancelled(Run()));
  user.join();
  host_->Release();
}

TEST_F(RunHostTest, WhatAnotherStageSaysIsHeardWhileWeightsAreOnTheirWay) {
  stages_[1].FailOnResume("out of memory");
  const absl::Status result = Run();
  EXPECT_EQ(result.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(result.message().find("stage 1 failed (LOADING): out of memory"), absl::string_view::npos) << result;
  host_->Release();
}

}  // namespace
}  // namespace resbm::coordinator
