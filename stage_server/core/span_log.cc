#include "stage_server/core/span_log.h"

namespace resbm::stage_server {

v1::Span* SpanLog::Add(v1::Span::Kind kind, std::uint32_t micro_batch, absl::Duration began, absl::Duration took) {
  if (spans_.size() >= kMost) return nullptr;
  v1::Span& span = spans_.emplace_back();
  span.set_kind(kind);
  span.set_micro_batch(micro_batch);
  span.set_start_nanos(absl::ToInt64Nanoseconds(began));
  span.set_duration_nanos(absl::ToInt64Nanoseconds(took));
  return &span;
}

void SpanLog::AddWork(v1::Span::Kind kind, std::uint32_t micro_batch, absl::Duration began, double seconds) {
  if (v1::Span* span = Add(kind, micro_batch, began, absl::Seconds(seconds)); span != nullptr) {
    span->set_direction(v1::LOCAL);
  }
}

void SpanLog::AddWait(End end, std::uint32_t micro_batch, absl::Duration began, absl::Duration ended) {
  if (v1::Span* span = Add(v1::Span::WAIT, micro_batch, began, ended - began); span != nullptr) {
    span->set_direction(DirectionOf(end));
  }
}

void SpanLog::AddTransfers(End end, const std::vector<wire::Transfer>& transfers) {
  for (const wire::Transfer& transfer : transfers) {
    v1::Span* span = Add(transfer.sent ? v1::Span::SEND : v1::Span::RECEIVE, transfer.micro_batch, transfer.began,
                         transfer.ended - transfer.began);
    if (span == nullptr) return;
    span->set_direction(DirectionOf(end));
    span->set_tensor_index(transfer.tensor_index);
    span->set_bytes(transfer.payload_bytes);
  }
}

}  // namespace resbm::stage_server
