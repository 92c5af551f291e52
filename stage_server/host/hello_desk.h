// Decides which of the stage's links a neighbour's Hello is for, and lets those wait that are early.
#ifndef RESBM_STAGE_SERVER_HOST_HELLO_DESK_H_
#define RESBM_STAGE_SERVER_HOST_HELLO_DESK_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/resbm/v1/link.pb.h"
#include "proto/wire/link_endpoint.h"
#include "stage_server/core/stage_links.h"
#include "stage_server/core/tenancy.h"

namespace resbm::stage_server {

// For one thread, the stage's.
class HelloDesk {
 public:
  using Found = std::function<void(absl::StatusOr<std::shared_ptr<wire::LinkEndpoint>>)>;

  // What the stage is at present.
  struct Situation {
    const Tenancy* tenancy = nullptr;
    bool links_open = false;
    std::function<std::shared_ptr<wire::LinkEndpoint>(End)> endpoint;
  };

  explicit HelloDesk(absl::Duration patience) : patience_(patience) {}

  // Answers now, or lets it wait: its fence may not have attached here yet, or not resumed. Who has waited for
  // too long, or comes in a crowd, gets UNAVAILABLE: another dial may find more.
  void Arrive(const v1::Hello& hello, Found found, const Situation& situation, absl::Duration now);
  // The situation has changed, or time has passed.
  void LookAgain(const Situation& situation, absl::Duration now);
  // Sends everybody away.
  void Close(const absl::Status& status);

  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Visitor {
    v1::Hello hello;
    Found found;
    absl::Duration until;
  };

  // The endpoint, FAILED_PRECONDITION, or nullopt: wait.
  static std::optional<absl::StatusOr<std::shared_ptr<wire::LinkEndpoint>>> Decide(const v1::Hello& hello,
                                                                                  const Situation& situation);

  const absl::Duration patience_;
  std::list<Visitor> waiting_;
};

// Neighbours are two; more that wait are strangers.
inline constexpr std::size_t kMaxWaitingHellos = 32;

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_HOST_HELLO_DESK_H_
