// What a stage did in one step, and when: the spans that Computed brings where Begin asked for them.
#ifndef RESBM_STAGE_SERVER_CORE_SPAN_LOG_H_
#define RESBM_STAGE_SERVER_CORE_SPAN_LOG_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "proto/resbm/v1/control.pb.h"
#include "proto/wire/transfer_log.h"
#include "stage_server/core/stage_links.h"

namespace resbm::stage_server {

class SpanLog {
 public:
  // About 700 KB of Computed, which must stay under gRPC's 4 MB; what comes beyond it is left out.
  static constexpr int kMost = 16384;

  // Of the compute thread; micro_batch is 0 where it means nothing.
  void AddWork(v1::Span::Kind kind, std::uint32_t micro_batch, absl::Duration began, double seconds);
  void AddWait(End end, std::uint32_t micro_batch, absl::Duration began, absl::Duration ended);
  void AddTransfers(End end, const std::vector<wire::Transfer>& transfers);

  // All of them, in the order in which they were added.
  const std::vector<v1::Span>& spans() const { return spans_; }

 private:
  v1::Span* Add(v1::Span::Kind kind, std::uint32_t micro_batch, absl::Duration began, absl::Duration took);

  std::vector<v1::Span> spans_;
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_CORE_SPAN_LOG_H_
