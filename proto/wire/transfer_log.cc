#include "proto/wire/transfer_log.h"

#include <algorithm>
#include <iterator>

namespace resbm::wire {
namespace {

Transfer Of(const v1::TensorHeader& header, bool sent) {
  Transfer transfer;
  transfer.sent = sent;
  transfer.step = header.step();
  transfer.micro_batch = header.micro_batch();
  transfer.tensor_index = header.tensor_index();
  transfer.payload_bytes = header.payload_bytes();
  return transfer;
}

}  // namespace

void TransferLog::Start(const Clock* clock) {
  clock_ = clock;
  if (clock != nullptr) return;
  leaving_ = {};
  receiving_.reset();
  done_ = {};
}

void TransferLog::Queued(std::uint64_t ordinal, const v1::TensorHeader& header) {
  if (clock_ == nullptr || !header.has_step() || leaving_.size() >= kMost) return;
  Transfer transfer = Of(header, /*sent=*/true);
  transfer.began = clock_->Now();
  leaving_.push_back({ordinal, transfer});
}

void TransferLog::Written(std::uint64_t written) {
  if (leaving_.empty() || leaving_.front().ordinal >= written) return;
  const absl::Duration now = clock_->Now();
  for (; !leaving_.empty() && leaving_.front().ordinal < written; leaving_.pop_front()) {
    if (done_.size() >= kMost) continue;
    done_.push_back(leaving_.front().transfer);
    done_.back().ended = now;
  }
}

void TransferLog::Received(const v1::TensorHeader& header) {
  if (!receiving_.has_value()) return;
  Transfer transfer = Of(header, /*sent=*/false);
  transfer.began = *receiving_;
  receiving_.reset();
  if (!header.has_step() || done_.size() >= kMost) return;
  transfer.ended = clock_->Now();
  done_.push_back(transfer);
}

std::vector<Transfer> TransferLog::Take(std::uint64_t step) {
  const auto later = std::stable_partition(done_.begin(), done_.end(),
                                           [step](const Transfer& transfer) { return transfer.step <= step; });
  std::vector<Transfer> taken(done_.begin(), later);
  done_.erase(done_.begin(), later);
  return taken;
}

}  // namespace resbm::wire
