// The metrics of a stage server, by docs/metrics.md.
#ifndef RESBM_STAGE_SERVER_METRICS_STAGE_FAMILIES_H_
#define RESBM_STAGE_SERVER_METRICS_STAGE_FAMILIES_H_

#include <vector>

#include "proto/metrics/metric.h"
#include "proto/resbm/v1/control.pb.h"
#include "stage_server/metrics/stage_snapshot.h"

namespace resbm::stage_server {

metrics::Catalogue StageMetrics();

// `identity`: what Describe says that never changes. `snapshot` null: the stage did not answer in time, and only what
// is known without it comes. Pure.
std::vector<prometheus::MetricFamily> StageFamilies(const v1::DescribeReply& identity, const StageSnapshot* snapshot);

}  // namespace resbm::stage_server

#endif  // RESBM_STAGE_SERVER_METRICS_STAGE_FAMILIES_H_
