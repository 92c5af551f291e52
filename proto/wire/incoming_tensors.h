// The receiving half of a LinkEndpoint: what the peer must send, in order, and how much of it the owner
// still holds. Not synchronised: the endpoint's lock guards it.
#ifndef RESBM_PROTO_WIRE_INCOMING_TENSORS_H_
#define RESBM_PROTO_WIRE_INCOMING_TENSORS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>

#include "proto/resbm/v1/link.pb.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::wire {

class IncomingTensors {
 public:
  // `header` is complete.
  void Expect(v1::TensorHeader header) { expected_.push_back(std::move(header)); }
  void SetLimit(std::uint32_t tensors, bool hard) {
    limit_ = tensors;
    hard_ = hard;
  }

  enum class Next {
    kTake,
    kHold,     // nothing is expected, or the inbox is full and the limit soft
    kTooMany,  // full, and the limit hard
  };
  // What to do with a chunk that comes now. Only a tensor that has not begun is held or refused.
  Next next() const;

  // The tensor being put together, or a fresh one for the front of the queue. The caller gives it back by
  // PutBack or Complete, or throws it away when the connection broke meanwhile.
  std::unique_ptr<TensorAssembler> TakeAssembler();
  void PutBack(std::unique_ptr<TensorAssembler> assembler) { assembler_ = std::move(assembler); }
  // So much of the tensor at the front is here; less than before when it comes again.
  void NoteBytes(std::uint64_t bytes) { front_bytes_ = std::max(front_bytes_, bytes); }
  // It is whole: the next in the queue is due.
  void Complete();
  // The connection broke: the tensor comes again from its first chunk.
  void Restart() { assembler_.reset(); }
  // Times that the tensor at the front was damaged on the way, this time included.
  int CountFailure() { return ++failures_; }

  void Consumed() {
    if (inbox_ > 0) --inbox_;
  }
  void Clear();

  // The tensor due; only while something is expected.
  const v1::TensorHeader& front() const { return expected_.front(); }
  std::uint64_t received() const { return received_; }
  // Payload of all tensors, the unfinished one as far as it ever got.
  std::uint64_t bytes() const { return whole_bytes_ + front_bytes_; }
  std::uint32_t inbox() const { return inbox_; }
  std::uint32_t limit() const { return limit_; }

 private:
  std::deque<v1::TensorHeader> expected_;
  std::unique_ptr<TensorAssembler> assembler_;
  std::uint64_t received_ = 0;
  std::uint64_t whole_bytes_ = 0;
  std::uint64_t front_bytes_ = 0;
  int failures_ = 0;
  std::uint32_t inbox_ = 0;
  std::uint32_t limit_ = 0;  // 0 = none
  bool hard_ = false;
};

}  // namespace resbm::wire

#endif  // RESBM_PROTO_WIRE_INCOMING_TENSORS_H_
