// What a program exposes to Prometheus: a catalogue of its metrics, and families made by it. The rules are those of
// https://prometheus.io/docs/practices/naming/: base units, counters end in _total, labels are few and bounded; a
// metric without a value is absent.
#ifndef RESBM_PROTO_METRICS_METRIC_H_
#define RESBM_PROTO_METRICS_METRIC_H_

#include <string>
#include <vector>

#include <prometheus/metric_family.h>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/metrics/histogram.h"

namespace resbm::metrics {

enum class Kind { kCounter, kGauge, kHistogram };

struct Metric {
  absl::string_view name;
  Kind kind = Kind::kGauge;
  // Names, separated by commas; "" = none.
  absl::string_view labels;
  // A sentence: HELP, and the table in docs/metrics.md.
  absl::string_view help;
};

using Catalogue = absl::Span<const Metric>;

// Collects values and makes families of them, in the catalogue's order. For one thread, once.
class Families {
 public:
  // The catalogue outlives it.
  explicit Families(Catalogue catalogue);

  // `label_values`: as many as the metric has labels, in its order. A name that is not in the catalogue, another kind
  // or another number of labels is a mistake of the program (an assertion; the value is left out).
  void Set(absl::string_view name, double value, std::vector<std::string> label_values = {});
  void Set(absl::string_view name, const Histogram& histogram, std::vector<std::string> label_values = {});

  // Those that have a value.
  std::vector<prometheus::MetricFamily> Take();

 private:
  prometheus::ClientMetric* Add(absl::string_view name, bool is_histogram, std::vector<std::string> label_values);

  const Catalogue catalogue_;
  std::vector<prometheus::MetricFamily> families_;  // as the catalogue
};

// Of a catalogue, in Markdown: name, type, labels, meaning.
std::string MarkdownTable(Catalogue catalogue);

}  // namespace resbm::metrics

#endif  // RESBM_PROTO_METRICS_METRIC_H_
