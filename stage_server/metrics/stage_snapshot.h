// Everything that /metrics says of a stage at one moment. Plain data: made on the stage's thread, read on any other.
#ifndef RESBM_STAGE_SERVER_METRICS_STAGE_SNAPSHOT_H_
#define RESBM_STAGE_SERVER_METRICS_STAGE_SNAPSHOT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "proto/resbm/v1/control.pb.h"
#include "stage_server/core/stage_machine.h"
#include "stage_server/metrics/link_totals.h"
#include "stage_server/metrics/stage_totals.h"

namespace resbm::stage_server {

struct StageSnapshot {
  // As Stage::Describe gives it.
  v1::DescribeReply now;
  bool attached = false;  // a coordinator's stream is open
  bool ready = false;     // see readiness.h
  StageMachine::Counters counters;
  StageTotals totals;
  std::array<LinkTotals, 2> links;  // by End
  std::uint64_t inbox_bytes = 0;
  // Of what is loaded; absent when nothing is.
  std::optional<v1::MemoryPlan> memory_plan;
  std::uint32_t window = 0;               // 0 = no limit
  std::array<std::string, 2> cut_points;  // by End, empty at the outer ends
};

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_METRICS_STAGE_SNAPSHOT_H_
