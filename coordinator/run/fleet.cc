#include "coordinator/run/fleet.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/base/clock.h"
#include "proto/base/status.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::coordinator {
namespace {

// How long a session may take to end after Release.
constexpr absl::Duration kGoodbye = absl::Seconds(2);

absl::Status CheckVersion(int stage, const std::string& address, const v1::DescribeReply& d) {
  if (d.min_protocol_version() <= wire::kProtocolVersion && wire::kProtocolVersion <= d.max_protocol_version()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "stage %d at %s speaks protocol versions %d to %d, this coordinator version %d; use the same release on both",
      stage, address, d.min_protocol_version(), d.max_protocol_version(), wire::kProtocolVersion));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::StartLocal(const LocalStages::Options& options,
                                                         absl::Duration connect_timeout) {
  auto fleet = std::unique_ptr<Fleet>(new Fleet());
  RESBM_ASSIGN_OR_RETURN(fleet->local_, LocalStages::Start(options));
  RESBM_RETURN_IF_ERROR(fleet->ConnectAll(fleet->local_->addresses(), connect_timeout));
  return fleet;
}

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::Connect(absl::Span<const std::string> addresses,
                                                      absl::Duration connect_timeout) {
  auto fleet = std::unique_ptr<Fleet>(new Fleet());
  RESBM_RETURN_IF_ERROR(fleet->ConnectAll(addresses, connect_timeout));
  return fleet;
}

absl::Status Fleet::ConnectAll(absl::Span<const std::string> addresses, absl::Duration timeout) {
  const absl::Duration deadline = Clock::Real().Now() + timeout;
  for (const std::string& address : addresses) {
    clients_.push_back(std::make_unique<StageClient>(address, grpc::InsecureChannelCredentials()));
  }
  // All connect side by side; the deadline is one for all.
  std::vector<std::string> unreachable;
  for (int s = 0; s < size(); ++s) {
    const absl::Duration left = std::max(deadline - Clock::Real().Now(), absl::Milliseconds(1));
    if (!clients_[s]->WaitForConnected(left).ok()) {
      unreachable.push_back(absl::StrFormat("stage %d at %s", s, addresses[s]));
    }
  }
  if (!unreachable.empty()) {
    return absl::DeadlineExceededError(absl::StrFormat(
        "%s cannot be reached within %s; is the stage server running there (stage_server --listen), and does a "
        "firewall let this machine through?",
        absl::StrJoin(unreachable, ", "), absl::FormatDuration(timeout)));
  }
  for (int s = 0; s < size(); ++s) {
    auto description = clients_[s]->Describe(timeout);
    if (!description.ok()) {
      return absl::Status(description.status().code(),
                          absl::StrFormat("stage %d at %s does not answer as a stage server: %s", s, addresses[s],
                                          description.status().message()));
    }
    RESBM_RETURN_IF_ERROR(CheckVersion(s, addresses[s], *description));
    descriptions_.push_back(*std::move(description));
  }
  return absl::OkStatus();
}

std::string Fleet::neighbour_address(int index) const {
  const std::string& advertised = descriptions_[index].advertised_address();
  return advertised.empty() ? clients_[index]->address() : advertised;
}

void Fleet::Release(const v1::Fence& fence) {
  v1::ControlRequest request;
  *request.mutable_fence() = fence;
  request.mutable_release();
  for (auto& client : clients_) client->Send(request);
  for (auto& client : clients_) client->Close(kGoodbye);
}

Fleet::~Fleet() = default;

}  // namespace resbm::coordinator
