// The sending half of a LinkEndpoint: the tensors of one fence and direction in order, where the present
// connection is among them, and which may be forgotten. Not synchronised: the endpoint's lock guards it.
#ifndef RESBM_PROTO_WIRE_OUTGOING_TENSORS_H_
#define RESBM_PROTO_WIRE_OUTGOING_TENSORS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "proto/base/encoded_tensor.h"
#include "proto/resbm/v1/link.pb.h"

namespace resbm::wire {

class OutgoingTensors {
 public:
  // What EncodeChunk needs, so that the checksum is computed outside the lock.
  struct Chunk {
    std::shared_ptr<const std::string> header_bytes;
    SharedBytes payload;  // the whole tensor's
    std::uint32_t index = 0;
    bool resent = false;  // an earlier connection had it already
  };

  // `header` is complete.
  void Add(v1::TensorHeader header, SharedBytes payload);

  // A connection begins, and the peer has the first `received` tensors. FAILED_PRECONDITION: it has more
  // than were sent, or wants one that was released; nothing changes then.
  absl::Status ResumeAt(std::uint64_t received);
  // The next chunk to write, or nullopt: all was given. The one before must have been Written.
  std::optional<Chunk> Next();
  // The transport took what Next gave last.
  void Written();

  // Forgets those that `chosen(header)` says among the tensors given in full to some connection (the peer's
  // answer may be here before the transport says that the write is over); one that is being sent again goes
  // when that is done.
  template <typename Chosen>
  void Release(const Chosen& chosen) {
    for (std::uint64_t i = 0; i < entries_.size() && first_ + i < reached_tensor_; ++i) {
      if (chosen(entries_[i].header)) entries_[i].released = true;
    }
    Sweep();
  }
  void Clear();

  std::uint64_t total() const { return first_ + entries_.size(); }
  // Tensors that the transport took in full at least once.
  std::uint64_t written() const { return written_; }
  std::uint64_t retained_bytes() const { return retained_bytes_; }

 private:
  struct Entry {
    v1::TensorHeader header;
    std::shared_ptr<const std::string> header_bytes;
    SharedBytes payload;
    bool released = false;
    bool dropped = false;  // released, and its bytes are gone
  };

  void Sweep();

  // Tensor i of the fence is entries_[i - first_].
  std::deque<Entry> entries_;
  std::uint64_t first_ = 0;
  // The chunk that Next gives.
  std::uint64_t next_tensor_ = 0;
  std::uint32_t next_chunk_ = 0;
  // The furthest that any connection was given.
  std::uint64_t reached_tensor_ = 0;
  std::uint32_t reached_chunk_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t retained_bytes_ = 0;
};

}  // namespace resbm::wire

#endif  // RESBM_PROTO_WIRE_OUTGOING_TENSORS_H_
