// The program itself: what scripts and operators rely on.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/resbm/v1/control.grpc.pb.h"
#include "proto/wire/grpc_link.h"
#include "tests/stage_server/support/server_process.h"
#include "tests/stage_server/support/specs.h"

namespace resbm::stage_server::testing {
namespace {

int Lines(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

TEST(StageServer, PrintsOneLineOnStdoutAndEndsWithZeroOnSigterm) {
  for (int signal : {SIGTERM, SIGINT}) {
    Server server;
    kill(server.pid(), signal);
    EXPECT_EQ(server.Wait(), 0);
    EXPECT_EQ(server.ReadRestOfStdout(), "");
    EXPECT_NE(server.ReadStderr().find("device=cpu"), std::string::npos);
  }
}

TEST(StageServer, EndsOnSigtermAlsoWithACoordinatorAttached) {
  Server server;
  auto stub = v1::StageControl::NewStub(ChannelTo(server));
  grpc::ClientContext context;
  auto stream = stub->Session(&context);
  v1::ControlRequest request;
  *request.mutable_fence() = MakeFence(1, 1);
  *request.mutable_attach() = MakeAttach(0, 1);
  stream->Write(request);
  v1::ControlEvent event;
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_TRUE(event.has_attached());
  kill(server.pid(), SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_FALSE(stream->Read(&event));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(StageServer, ASecondServerOnATakenPortExitsTwoWithOneLineThatSaysWhatToDo) {
  Server first;
  ChildProcess second(Command({"--listen", first.address, "--device", "cpu"}));
  EXPECT_EQ(second.Wait(), 2);
  EXPECT_EQ(second.ReadRestOfStdout(), "");
  const std::string text = second.ReadStderr();
  EXPECT_EQ(Lines(text), 1) << text;
  EXPECT_NE(text.find(absl::StrCat("cannot listen on ", first.address)), std::string::npos) << text;
  EXPECT_NE(text.find("give another --listen"), std::string::npos) << text;
  // The first is not disturbed.
  grpc::Status status;
  Call(first, "/resbm.v1.StageControl/Describe", "", &status);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(StageServer, WrongUseExitsTwoWithALine) {
  const std::vector<std::vector<std::string>> wrong = {{"--listen", "0.0.0.0:0"},  {"--listen", "nonsense"},
                                                       {"--device", "gpu7"},       {"--threads", "-1"},
                                                       {"--no-such-flag"},         {"--advertise", "host"}};
  for (const auto& arguments : wrong) {
    ChildProcess server(Command(arguments));
    EXPECT_EQ(server.Wait(), 2) << arguments[0];
    EXPECT_EQ(server.ReadRestOfStdout(), "") << arguments[0];
    EXPECT_NE(server.ReadStderr(), "") << arguments[0];
  }
}

TEST(StageServer, HelpHasAnExampleAndVersionIsOne) {
  ChildProcess help(Command({"--help"}));
  EXPECT_NE(help.ReadRestOfStdout().find("Example:"), std::string::npos);
  EXPECT_EQ(help.Wait(), 0);
  ChildProcess version(Command({"--version"}));
  EXPECT_TRUE(absl::StartsWith(version.ReadRestOfStdout(), "stage_server "));
  EXPECT_EQ(version.Wait(), 0);
}

TEST(StageServer, DescribesItselfAndItsMachine) {
  Server server({"--threads", "3", "--advertise", "host-a:7001", "--memory-limit", "1gb"});
  auto stub = v1::StageControl::NewStub(ChannelTo(server));
  grpc::ClientContext context;
  v1::DescribeReply reply;
  ASSERT_TRUE(stub->Describe(&context, v1::DescribeRequest(), &reply).ok());
  EXPECT_EQ(reply.min_protocol_version(), wire::kProtocolVersion);
  EXPECT_EQ(reply.device(), "cpu");
  EXPECT_NE(reply.device_name(), "");
  EXPECT_NE(reply.libtorch_version(), "");
  EXPECT_NE(reply.cpu_capability(), "");
  EXPECT_NE(reply.incarnation(), 0u);
  EXPECT_EQ(reply.max_threads(), 3u);
  EXPECT_EQ(reply.memory_limit_bytes(), std::uint64_t{1} << 30);
  EXPECT_EQ(reply.advertised_address(), "host-a:7001");
  EXPECT_EQ(reply.state(), "EMPTY");
}

TEST(StageServer, IsHealthyAndTellsItsServicesByReflection) {
  Server server;
  grpc::Status status;
  // HealthCheckResponse.status = SERVING (1).
  EXPECT_EQ(Call(server, "/grpc.health.v1.Health/Check", "", &status), std::string("\x08\x01"));
  EXPECT_TRUE(status.ok()) << status.error_message();
  // ServerReflectionRequest.list_services = "*".
  const std::string services =
      Call(server, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*", &status);
  EXPECT_NE(services.find("resbm.v1.StageControl"), std::string::npos);
}

// Out of memory at a stage: a typed failure that says what to change; the process lives.
TEST(StageServer, AJobBeyondTheMemoryLimitIsRefusedAndTheNextOneThatFitsIsTaken) {
  Server server({"--memory-limit", "1mb"});
  auto stub = v1::StageControl::NewStub(ChannelTo(server));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  auto stream = stub->Session(&context);
  v1::ControlEvent event;
  const auto say = [&](v1::ControlRequest request) {
    *request.mutable_fence() = MakeFence(1, 1);
    stream->Write(request);
    ASSERT_TRUE(stream->Read(&event));
  };
  v1::ControlRequest request;
  *request.mutable_attach() = MakeAttach(0, 1);
  say(request);
  ASSERT_TRUE(event.has_attached());
  v1::StageSpec large = MakeSpec(0, 1);
  large.mutable_layers(0)->set_parameters(1'000'000);
  request.Clear();
  *request.mutable_resume() = MakeInit(large);
  say(request);
  ASSERT_TRUE(event.has_failed()) << event.ShortDebugString();
  EXPECT_EQ(event.failed().code(), static_cast<std::uint32_t>(absl::StatusCode::kResourceExhausted));
  EXPECT_NE(event.failed().text().find("--memory-limit"), std::string::npos);
  v1::StageSpec small = MakeSpec(0, 1);
  v1::LayerSpec flatten;
  flatten.set_name("flatten");
  flatten.mutable_flatten();
  for (std::int64_t dim : {1, 2, 2}) flatten.add_input_shape(dim);
  flatten.add_output_shape(kWidth);
  small.mutable_layers(0)->set_index(1);
  *small.add_layers() = flatten;
  small.mutable_layers()->SwapElements(0, 1);
  *small.mutable_input_shape() = flatten.input_shape();
  small.add_input_mean(0);
  small.add_input_std(1);
  request.Clear();
  *request.mutable_resume() = MakeInit(small);
  say(request);
  EXPECT_TRUE(event.has_ready()) << event.ShortDebugString();
  context.TryCancel();
  stream->Finish();
}

TEST(StageServer, EndsWithTheProcessThatStartedIt) {
  // The orphan comes to us, so that its end can be waited for.
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const std::vector<std::string> arguments =
      Command({"--listen", "127.0.0.1:0", "--device", "cpu", "--exit-with-parent"});
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t child = fork();
    if (child == 0) {
      dup2(ready[1], STDOUT_FILENO);
      execl(arguments[0].c_str(), arguments[0].c_str(), arguments[1].c_str(), arguments[2].c_str(),
            arguments[3].c_str(), arguments[4].c_str(), arguments[5].c_str(), nullptr);
      _exit(127);
    }
    pause();
    _exit(0);
  }
  char c = 0;
  while (read(ready[0], &c, 1) == 1 && c != '\n') {
  }
  kill(parent, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(parent, &status, 0), parent);
  // The only other child is the server.
  EXPECT_GT(waitpid(-1, &status, 0), 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace resbm::stage_server::testing
