// When tensors crossed one end of a link, for those who draw a timeline of it. Measures nothing until it is
// started. Not synchronised: the endpoint's lock guards it.
#ifndef RESBM_PROTO_WIRE_TRANSFER_LOG_H_
#define RESBM_PROTO_WIRE_TRANSFER_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/resbm/v1/link.pb.h"

namespace resbm::wire {

// A tensor of a step that has crossed.
struct Transfer {
  bool sent = false;  // else received
  std::uint64_t step = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t tensor_index = 0;
  std::uint64_t payload_bytes = 0;
  // Sent: from Send until a connection had taken all of it, the first time. Received: from the first of its messages
  // that was taken, of the first connection that brought any, until it was whole and checked.
  absl::Duration began;
  absl::Duration ended;
};

class TransferLog {
 public:
  // Beyond so many finished ones, or tensors on their way out, none is recorded until some are taken.
  static constexpr std::size_t kMost = 16384;

  // Records from now on, by `clock` (which outlives the log); null: no more, and forgets what there is. Tensors that
  // are on their way out already are not recorded.
  void Start(const Clock* clock);

  // Tensor `ordinal` of this direction, counted from 0, is queued. Ascending.
  void Queued(std::uint64_t ordinal, const v1::TensorHeader& header);
  // The first `written` tensors have been handed to a connection in full.
  void Written(std::uint64_t written);

  // A message of the tensor due came / it is whole.
  void MessageCame() {
    if (clock_ != nullptr && !receiving_.has_value()) receiving_ = clock_->Now();
  }
  void Received(const v1::TensorHeader& header);

  // Those of steps up to `step`, in the order in which they ended; the others stay.
  std::vector<Transfer> Take(std::uint64_t step);

 private:
  struct Leaving {
    std::uint64_t ordinal = 0;
    Transfer transfer;
  };

  const Clock* clock_ = nullptr;
  std::deque<Leaving> leaving_;
  std::optional<absl::Duration> receiving_;
  std::vector<Transfer> done_;
};

}  // namespace resbm::wire

#endif  // RESBM_PROTO_WIRE_TRANSFER_LOG_H_
