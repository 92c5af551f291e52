// docs/metrics.md, made from the programs' catalogues.
#ifndef RESBM_TESTS_METRICS_METRICS_PAGE_H_
#define RESBM_TESTS_METRICS_METRICS_PAGE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/metrics/run_families.h"
#include "proto/metrics/metric.h"
#include "proto/metrics/process_metrics.h"
#include "stage_server/metrics/stage_families.h"

namespace resbm {

inline std::string MetricsPage() {
  return absl::StrCat(
      R"(# Metrics

`stage_server --metrics-listen HOST:PORT` and `resbm train --metrics-listen HOST:PORT` serve these at
`http://HOST:PORT/metrics` for Prometheus. A metric without a value is absent, not zero. The tables are made from the
code: `bazel run //tests/metrics:update_page`. `deploy/prometheus/` has settings and alert rules, `deploy/grafana/` a
dashboard.

Values are read when Prometheus asks: the stage's own thread, which never computes, copies them between two events, and
no micro-batch does anything for them. A scrape took 4 ms in the middle of training on two cores that were both busy. A
stage that does not answer within 5 s gives what is known without it.

## Of a stage server

`end` is `up` (towards the input) or `down` (towards the output), `direction` is `sent` or `received`. Counters go on
over all jobs of the process.

)",
      metrics::MarkdownTable(stage_server::StageMetrics()), R"(
Which boundary an end belongs to, in PromQL:
`rate(resbm_stage_link_payload_bytes_total[1m]) * on (instance, end) group_left (cut_point) resbm_stage_link_info`.

## Of the coordinator

`boundary` is a cut point, `stage` counts from 0. A planned step time is not there yet.

)",
      metrics::MarkdownTable(coordinator::RunMetricsCatalogue()), R"(
## Of both

)",
      metrics::MarkdownTable(metrics::ProcessMetrics()), R"(
prometheus-cpp adds three of its own about the scrapes: `exposer_transferred_bytes_total`, `exposer_scrapes_total`,
`exposer_request_latencies`.
)");
}

}  // namespace resbm

#endif  // RESBM_TESTS_METRICS_METRICS_PAGE_H_
