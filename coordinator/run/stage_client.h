// The coordinator's gRPC line to one stage server: its control session, and its weights.
#ifndef RESBM_COORDINATOR_RUN_STAGE_CLIENT_H_
#define RESBM_COORDINATOR_RUN_STAGE_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <grpcpp/grpcpp.h>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/run/shard_upload.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// Methods: any thread. Handlers run on gRPC's threads.
class StageClient {
 public:
  struct Handlers {
    std::function<void(v1::ControlEvent)> on_event;
    // Once, after the last event: the session has ended, OK if the stage released the job.
    std::function<void(absl::Status)> on_closed;
  };

  StageClient(std::string address, std::shared_ptr<grpc::ChannelCredentials> credentials);
  ~StageClient();  // Close

  // Waits until the server is connected. DEADLINE_EXCEEDED: it is not (says what to check).
  absl::Status WaitForConnected(absl::Duration timeout);
  // UNAVAILABLE, DEADLINE_EXCEEDED, or UNIMPLEMENTED where something else than a stage server listens.
  absl::StatusOr<v1::DescribeReply> Describe(absl::Duration timeout);

  // Once. The session has a connection of its own, apart from that of the links.
  void OpenSession(Handlers handlers);
  // Nothing happens without a session, or after its end.
  void Send(const v1::ControlRequest& request);
  // No more requests. The stage ends the session after Release; after `patience` it is cancelled. Returns
  // when on_closed has been called.
  void Close(absl::Duration patience);

  // The stage's weights as a safetensors file. FAILED_PRECONDITION: another fence or state. DATA_LOSS: hash.
  absl::StatusOr<std::string> DownloadWeights(const std::string& job_id, const v1::Fence& fence,
                                              std::uint64_t state_id);
  // For a Resume with restore; returns at once, see ShardUpload. The upload must not outlive the client.
  std::unique_ptr<ShardUpload> UploadWeights(const std::string& job_id, const v1::Fence& fence,
                                             std::string_view weights, std::function<void(absl::Status)> done);

  const std::string& address() const { return address_; }

 private:
  class Session;

  const std::string address_;
  const std::shared_ptr<grpc::Channel> channel_;
  std::shared_ptr<Session> session_;  // no other owner
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_STAGE_CLIENT_H_
