// The stage servers of one run: started here or found at addresses, described, talked to, released.
#ifndef RESBM_COORDINATOR_RUN_FLEET_H_
#define RESBM_COORDINATOR_RUN_FLEET_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "coordinator/run/local_stages.h"
#include "coordinator/run/stage_client.h"
#include "proto/resbm/v1/control.pb.h"

namespace resbm::coordinator {

// For one thread.
class Fleet {
 public:
  // Started on this machine; they end with the fleet. Errors as LocalStages::Start, then as Connect.
  static absl::StatusOr<std::unique_ptr<Fleet>> StartLocal(const LocalStages::Options& options,
                                                           absl::Duration connect_timeout);
  // Started by somebody else. DEADLINE_EXCEEDED: one cannot be reached within the timeout (all are named).
  // FAILED_PRECONDITION: one speaks another protocol version (both are said). UNIMPLEMENTED: no stage server.
  static absl::StatusOr<std::unique_ptr<Fleet>> Connect(absl::Span<const std::string> addresses,
                                                        absl::Duration connect_timeout);
  // Releases what is held, ends the sessions, stops local processes.
  ~Fleet();

  int size() const { return static_cast<int>(clients_.size()); }
  StageClient& stage(int index) { return *clients_[index]; }
  const v1::DescribeReply& description(int index) const { return descriptions_[index]; }
  // Where its neighbours reach it.
  std::string neighbour_address(int index) const;
  bool local() const { return local_ != nullptr; }

  // Says Release with this fence to all sessions and waits for their end.
  void Release(const v1::Fence& fence);

 private:
  Fleet() = default;
  absl::Status ConnectAll(absl::Span<const std::string> addresses, absl::Duration timeout);

  std::unique_ptr<LocalStages> local_;  // outlives the clients
  std::vector<std::unique_ptr<StageClient>> clients_;
  std::vector<v1::DescribeReply> descriptions_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_RUN_FLEET_H_
