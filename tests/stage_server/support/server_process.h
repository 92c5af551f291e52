// The program stage_server ($STAGE_SERVER) as a test starts it and calls it.
#ifndef RESBM_TESTS_STAGE_SERVER_SUPPORT_SERVER_PROCESS_H_
#define RESBM_TESTS_STAGE_SERVER_SUPPORT_SERVER_PROCESS_H_

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "proto/wire/grpc_link.h"
#include "tests/stage_server/support/child_process.h"

namespace resbm::stage_server::testing {

inline std::vector<std::string> Command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::getenv("STAGE_SERVER"));
  return arguments;
}

class Server : public ChildProcess {
 public:
  explicit Server(std::vector<std::string> more = {}, const std::string& listen = "127.0.0.1:0")
      : ChildProcess(Command([&] {
          more.insert(more.begin(), {"--listen", listen, "--device", "cpu"});
          return more;
        }())) {
    const std::string line = ReadLine();
    EXPECT_TRUE(absl::StartsWith(line, "LISTENING 127.0.0.1:")) << line << ReadStderrIf(line.empty());
    if (line.size() > 10) address = line.substr(10);
  }
  std::string address;

 private:
  std::string ReadStderrIf(bool condition) { return condition ? ReadStderr() : ""; }
};

inline std::shared_ptr<grpc::Channel> ChannelTo(const Server& server) {
  return wire::MakeChannel(server.address, grpc::InsecureChannelCredentials());
}

// A call of any method with bytes; the reply's bytes.
inline std::string Call(const Server& server, const std::string& method, const std::string& request,
                        grpc::Status* status) {
  grpc::GenericStub stub(ChannelTo(server));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  grpc::CompletionQueue queue;
  const grpc::Slice slice(request);
  const grpc::ByteBuffer bytes(&slice, 1);
  auto call = stub.PrepareUnaryCall(&context, method, bytes, &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  call->Finish(&reply, status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  std::string text;
  std::vector<grpc::Slice> slices;
  if (status->ok()) reply.Dump(&slices);
  for (const grpc::Slice& part : slices) text.append(reinterpret_cast<const char*>(part.begin()), part.size());
  return text;
}

}  // namespace resbm::stage_server::testing

#endif  // RESBM_TESTS_STAGE_SERVER_SUPPORT_SERVER_PROCESS_H_
