// The metrics of the coordinator, by docs/metrics.md.
#ifndef RESBM_COORDINATOR_METRICS_RUN_FAMILIES_H_
#define RESBM_COORDINATOR_METRICS_RUN_FAMILIES_H_

#include <vector>

#include "coordinator/metrics/run_snapshot.h"
#include "proto/metrics/metric.h"

namespace resbm::coordinator {

metrics::Catalogue RunMetricsCatalogue();

// Pure.
std::vector<prometheus::MetricFamily> RunFamilies(const RunSnapshot& run);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_METRICS_RUN_FAMILIES_H_
