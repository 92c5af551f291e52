#include "proto/wire/incoming_tensors.h"

#include <utility>

namespace resbm::wire {

IncomingTensors::Next IncomingTensors::next() const {
  if (assembler_ != nullptr) return Next::kTake;
  // First: a sender may be a step ahead of a receiver that has not been told of it, whatever its inbox holds.
  if (expected_.empty()) return Next::kHold;
  if (limit_ == 0 || inbox_ < limit_) return Next::kTake;
  return hard_ ? Next::kTooMany : Next::kHold;
}

std::unique_ptr<TensorAssembler> IncomingTensors::TakeAssembler() {
  if (assembler_ == nullptr) return std::make_unique<TensorAssembler>(expected_.front());
  return std::move(assembler_);
}

void IncomingTensors::Complete() {
  whole_bytes_ += expected_.front().payload_bytes();
  front_bytes_ = 0;
  expected_.pop_front();
  ++received_;
  ++inbox_;
  failures_ = 0;
}

void IncomingTensors::Clear() {
  expected_.clear();
  assembler_.reset();
}

}  // namespace resbm::wire
