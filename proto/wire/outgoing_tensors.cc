#include "proto/wire/outgoing_tensors.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace resbm::wire {

void OutgoingTensors::Add(v1::TensorHeader header, SharedBytes payload) {
  auto header_bytes = std::make_shared<const std::string>(header.SerializeAsString());
  retained_bytes_ += payload.size();
  entries_.push_back({std::move(header), std::move(header_bytes), std::move(payload)});
}

absl::Status OutgoingTensors::ResumeAt(std::uint64_t received) {
  if (received > reached_tensor_) {
    return absl::FailedPreconditionError(absl::StrCat("the peer has ", received, " tensors, only ", reached_tensor_,
                                                      " were sent: is it another run's, or was this end restarted?"));
  }
  // Those before first_ are gone; among the later ones single ones may be.
  for (std::uint64_t i = received; i < reached_tensor_; ++i) {
    if (i < first_ || entries_[i - first_].dropped) {
      return absl::FailedPreconditionError(
          absl::StrCat("the peer wants tensor ", i, ", which was released: it lost what it had computed"));
    }
  }
  next_tensor_ = received;
  next_chunk_ = 0;
  written_ = std::max(written_, received);
  Sweep();
  return absl::OkStatus();
}

std::optional<OutgoingTensors::Chunk> OutgoingTensors::Next() {
  if (next_tensor_ == total()) return std::nullopt;
  const Entry& entry = entries_[next_tensor_ - first_];
  Chunk chunk{entry.header_bytes, entry.payload, next_chunk_,
              std::tie(next_tensor_, next_chunk_) < std::tie(reached_tensor_, reached_chunk_)};
  if (++next_chunk_ == entry.header.chunk_count()) {
    ++next_tensor_;
    next_chunk_ = 0;
  }
  if (std::tie(reached_tensor_, reached_chunk_) < std::tie(next_tensor_, next_chunk_)) {
    reached_tensor_ = next_tensor_;
    reached_chunk_ = next_chunk_;
  }
  return chunk;
}

void OutgoingTensors::Written() {
  written_ = std::max(written_, next_tensor_);
  Sweep();
}

void OutgoingTensors::Sweep() {
  for (std::uint64_t i = 0; i < entries_.size() && first_ + i < next_tensor_; ++i) {
    Entry& entry = entries_[i];
    if (!entry.released || entry.dropped) continue;
    entry.dropped = true;
    retained_bytes_ -= entry.payload.size();
    entry.payload = SharedBytes();
  }
  while (!entries_.empty() && entries_.front().dropped) {
    entries_.pop_front();
    ++first_;
  }
}

void OutgoingTensors::Clear() {
  // Everything counts as given: nothing is sent any more.
  next_tensor_ = first_ = total();
  next_chunk_ = 0;
  entries_.clear();
  retained_bytes_ = 0;
}

}  // namespace resbm::wire
