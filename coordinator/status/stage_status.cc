#include "coordinator/status/stage_status.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "absl/strings/escaping.h"
#include "proto/base/mutex.h"
#include "proto/resbm/v1/control.grpc.pb.h"
#include "proto/wire/grpc_link.h"
#include "proto/wire/grpc_status.h"

namespace resbm::coordinator {
namespace {

struct Call {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::StageControl::Stub> stub;
  grpc::ClientContext context;
  v1::DescribeRequest request;
  v1::DescribeReply reply;
};

// What comes from a peer is shown on terminals, which obey some bytes.
v1::DescribeReply Printable(v1::DescribeReply reply) {
  for (std::string* text : {reply.mutable_job_id(), reply.mutable_state(), reply.mutable_device(),
                            reply.mutable_device_name(), reply.mutable_server_version(),
                            reply.mutable_libtorch_version(), reply.mutable_cpu_capability(),
                            reply.mutable_advertised_address()}) {
    *text = absl::Utf8SafeCEscape(*text);
  }
  return reply;
}

}  // namespace

std::vector<StageStatus> DescribeStages(absl::Span<const std::string> addresses, absl::Duration timeout) {
  std::vector<StageStatus> statuses(addresses.size());
  std::vector<Call> calls(addresses.size());
  Mutex mutex;
  CondVar changed;
  std::size_t answered = 0;
  const auto deadline = std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Call& call = calls[i];
    StageStatus* const status = &statuses[i];
    status->address = addresses[i];
    // A channel of its own each time: one that has failed before would not try again at once.
    call.channel = wire::MakeChannel(addresses[i], grpc::InsecureChannelCredentials());
    call.stub = v1::StageControl::NewStub(call.channel);
    call.context.set_deadline(deadline);
    call.stub->async()->Describe(&call.context, &call.request, &call.reply, [&, status](const grpc::Status& result) {
      if (!result.ok()) status->error = wire::FromGrpc(result);
      MutexLock lock(mutex);
      ++answered;
      changed.NotifyAll();
    });
  }
  {
    MutexLock lock(mutex);
    while (answered < calls.size()) changed.Wait(mutex);
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    absl::Status& error = statuses[i].error;
    if (error.ok()) {
      statuses[i].reply = Printable(std::move(calls[i].reply));
    } else {
      error = absl::Status(error.code(), absl::Utf8SafeCEscape(error.message()));
    }
  }
  return statuses;
}

}  // namespace resbm::coordinator
