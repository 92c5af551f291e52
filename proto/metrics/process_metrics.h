// What Prometheus' own clients say of every process, under the names that they all use.
#ifndef RESBM_PROTO_METRICS_PROCESS_METRICS_H_
#define RESBM_PROTO_METRICS_PROCESS_METRICS_H_

#include "proto/metrics/metric.h"

namespace resbm::metrics {

Catalogue ProcessMetrics();

// Of this process, from /proc; what cannot be read is absent. Any thread.
std::vector<prometheus::MetricFamily> ProcessFamilies();

}  // namespace resbm::metrics

#endif  // RESBM_PROTO_METRICS_PROCESS_METRICS_H_
