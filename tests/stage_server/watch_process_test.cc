// How the program is watched: /metrics, the health services, the log.
#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/resbm/v1/control.grpc.pb.h"
#include "tests/stage_server/support/server_process.h"
#include "tests/stage_server/support/specs.h"
#include "tests/support/http_get.h"

namespace resbm::stage_server::testing {
namespace {

using resbm::testing::HttpGet;
using resbm::testing::ParseSamples;

// HealthCheckRequest.service; the reply's status, or the call's code where it fails.
std::string Health(const Server& server, const std::string& service) {
  grpc::Status status;
  const std::string request =
      service.empty() ? "" : absl::StrCat("\x0a", std::string(1, static_cast<char>(service.size())), service);
  const std::string reply = Call(server, "/grpc.health.v1.Health/Check", request, &status);
  if (!status.ok()) return absl::StrCat("code ", static_cast<int>(status.error_code()));
  if (reply == "\x08\x01") return "SERVING";
  return reply == "\x08\x02" ? "NOT_SERVING" : "?";
}

// A coordinator that holds the stage for as long as it lives.
class Holder {
 public:
  explicit Holder(const Server& server) : stub_(v1::StageControl::NewStub(ChannelTo(server))) {
    stream_ = stub_->Session(&context_);
    v1::ControlRequest request;
    *request.mutable_fence() = MakeFence(1, 1);
    *request.mutable_attach() = MakeAttach(0, 1);
    stream_->Write(request);
    v1::ControlEvent event;
    EXPECT_TRUE(stream_->Read(&event) && event.has_attached());
  }
  ~Holder() {
    context_.TryCancel();
    stream_->Finish();
  }

 private:
  std::unique_ptr<v1::StageControl::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ControlRequest, v1::ControlEvent>> stream_;
};

std::string MetricsAddress(Server* server) {
  const std::string line = server->ReadLine();
  EXPECT_TRUE(absl::StartsWith(line, "METRICS 127.0.0.1:")) << line;
  return line.substr(line.find(' ') + 1);
}

TEST(Metrics, AreServedOverHttpAndFollowTheStage) {
  Server server({"--metrics-listen", "127.0.0.1:0", "--memory-limit", "1gb"});
  const std::string address = MetricsAddress(&server);
  auto samples = ParseSamples(HttpGet(address, "/metrics").body);
  EXPECT_EQ(samples["resbm_stage_state{state=\"EMPTY\"}"], 1);
  EXPECT_EQ(samples["resbm_stage_attached"], 0);
  EXPECT_EQ(samples["resbm_stage_memory_limit_bytes"], 1 << 30);
  EXPECT_GT(samples["process_start_time_seconds"], 1.6e9);
  EXPECT_EQ(samples.count("resbm_stage_last_step"), 0u);
  {
    Holder holder(server);
    samples = ParseSamples(HttpGet(address, "/metrics").body);
    EXPECT_EQ(samples["resbm_stage_state{state=\"FENCED\"}"], 1);
    EXPECT_EQ(samples["resbm_stage_attached"], 1);
    EXPECT_EQ(samples["resbm_stage_job_info{job=\"job-a\",stage=\"0\",stages=\"1\",fence=\"1.1\"}"], 1);
  }
  kill(server.pid(), SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_NE(server.ReadStderr().find(absl::StrCat("metrics=", address)), std::string::npos);
}

TEST(Metrics, ATakenPortExitsTwoWithOneLineAndNothingIsServed) {
  Server first({"--metrics-listen", "127.0.0.1:0"});
  const std::string taken = MetricsAddress(&first);
  ChildProcess second(Command({"--listen", "127.0.0.1:0", "--device", "cpu", "--metrics-listen", taken}));
  EXPECT_EQ(second.Wait(), 2);
  EXPECT_EQ(second.ReadRestOfStdout(), "");
  const std::string error = second.ReadStderr();
  EXPECT_NE(error.find(absl::StrCat("--metrics-listen: cannot listen on ", taken)), std::string::npos) << error;
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
}

TEST(Metrics, WhatOthersCouldReadNeedsInsecure) {
  ChildProcess server(Command({"--listen", "127.0.0.1:0", "--metrics-listen", "0.0.0.0:0"}));
  EXPECT_EQ(server.Wait(), 2);
  EXPECT_NE(server.ReadStderr().find("--insecure"), std::string::npos);
}

TEST(Health, AStageWhoseCoordinatorIsGoneIsAliveButNotReady) {
  Server server;
  EXPECT_EQ(Health(server, ""), "SERVING");
  EXPECT_EQ(Health(server, "ready"), "SERVING");
  EXPECT_EQ(Health(server, "unknown"), absl::StrCat("code ", static_cast<int>(grpc::StatusCode::NOT_FOUND)));
  {
    Holder holder(server);
    EXPECT_EQ(Health(server, "ready"), "SERVING");
  }
  // Ticks notice it.
  while (Health(server, "ready") == "SERVING") std::this_thread::yield();
  EXPECT_EQ(Health(server, "ready"), "NOT_SERVING");
  EXPECT_EQ(Health(server, ""), "SERVING");
}

TEST(Log, JsonIsOneObjectALineWithTimeLevelAndWhere) {
  Server server({"--log-format", "json"});
  { Holder holder(server); }
  while (Health(server, "ready") == "SERVING") std::this_thread::yield();
  kill(server.pid(), SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  std::istringstream log(server.ReadStderr());
  std::map<std::string, nlohmann::json> events;
  for (std::string line; std::getline(log, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(event.is_object()) << line;
    EXPECT_EQ(event["time"].get<std::string>().size(), std::string("2026-01-02T03:04:05.678+00:00").size()) << line;
    events[event["event"]] = event;
  }
  EXPECT_EQ(events["listening"]["address"], server.address);
  EXPECT_EQ(events["listening"]["level"], "info");
  EXPECT_EQ(events["attached"]["job"], "job-a");
  EXPECT_EQ(events["attached"]["stage"], 0);
  EXPECT_EQ(events["attached"]["stages"], 1);
  EXPECT_EQ(events["attached"]["fence"], "1.1");
  EXPECT_EQ(events["attached"]["step"], 0);
  EXPECT_EQ(events["control_stream_lost"]["level"], "warning");
  EXPECT_EQ(events["not_ready"]["reason"], "its coordinator is gone, and the lease of the job runs");
  EXPECT_TRUE(events["stopping"].is_object());
}

TEST(Log, AnUnknownFormatExitsTwo) {
  ChildProcess server(Command({"--log-format", "xml"}));
  EXPECT_EQ(server.Wait(), 2);
}

}  // namespace
}  // namespace resbm::stage_server::testing
