#include "stage_server/core/buffer_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "proto/base/status.h"
#include "stage_server/core/stage_links.h"
#include "stage_server/core/tensor_plan.h"

namespace resbm::stage_server {
namespace {

// Of each micro-batch, all its tensors together. `make` is ExpectedTensors or OutgoingTensors.
template <typename Make>
absl::StatusOr<std::vector<std::uint64_t>> Bytes(Make make, const StageShape& shape, End end,
                                                 const std::vector<std::int64_t>& samples,
                                                 std::uint64_t max_tensor_bytes) {
  std::vector<std::uint64_t> bytes;
  for (std::size_t mb = 0; mb < samples.size(); ++mb) {
    RESBM_ASSIGN_OR_RETURN(const std::vector<v1::TensorHeader> headers,
                           make(shape, end, WorkId(), static_cast<std::uint32_t>(mb), samples[mb], max_tensor_bytes));
    bytes.push_back(0);
    for (const v1::TensorHeader& header : headers) bytes.back() += header.payload_bytes();
  }
  return bytes;
}

// Of the `count` largest together.
std::uint64_t Largest(std::vector<std::uint64_t> bytes, std::size_t count) {
  std::sort(bytes.begin(), bytes.end(), std::greater<>());
  bytes.resize(std::min(bytes.size(), count));
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

}  // namespace

absl::StatusOr<BufferPlan> PlanBuffers(const StageShape& shape, const std::vector<std::int64_t>& samples,
                                       const std::vector<std::int64_t>& next, std::uint64_t max_tensor_bytes) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  const auto window = [&](std::uint32_t stage) {
    return shape.window_of(stage) == 0 ? kAll : std::size_t{shape.window_of(stage)};
  };
  BufferPlan plan;
  for (End end : kEnds) {
    RESBM_ASSIGN_OR_RETURN(const auto comes, Bytes(ExpectedTensors, shape, end, samples, max_tensor_bytes));
    const bool outer = end == End::kUp ? shape.is_first() : shape.is_last();
    if (outer) {
      RESBM_ASSIGN_OR_RETURN(const auto early, Bytes(ExpectedTensors, shape, end, next, max_tensor_bytes));
      plan.inbox_bytes += Largest(comes, kAll) + Largest(early, kAll);
      continue;
    }
    // As the inbox is limited: nobody has more under way than the upstream end of the link.
    plan.inbox_bytes += Largest(comes, window(end == End::kUp ? shape.stage - 1 : shape.stage));
    RESBM_ASSIGN_OR_RETURN(const auto goes, Bytes(OutgoingTensors, shape, end, samples, max_tensor_bytes));
    plan.retained_bytes += Largest(goes, end == End::kUp ? kAll : window(shape.stage));
  }
  return plan;
}

}  // namespace resbm::stage_server
