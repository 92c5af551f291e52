#include "proto/metrics/metric.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace resbm::metrics {
namespace {

prometheus::MetricType TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter: return prometheus::MetricType::Counter;
    case Kind::kGauge: return prometheus::MetricType::Gauge;
    case Kind::kHistogram: return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter: return "counter";
    case Kind::kGauge: return "gauge";
    case Kind::kHistogram: return "histogram";
  }
  return "";
}

std::vector<std::string> LabelNames(const Metric& metric) {
  return absl::StrSplit(metric.labels, ',', absl::SkipEmpty());
}

}  // namespace

Families::Families(Catalogue catalogue) : catalogue_(catalogue), families_(catalogue.size()) {
  for (std::size_t i = 0; i < catalogue.size(); ++i) {
    families_[i].name = std::string(catalogue[i].name);
    families_[i].help = std::string(catalogue[i].help);
    families_[i].type = TypeOf(catalogue[i].kind);
  }
}

prometheus::ClientMetric* Families::Add(absl::string_view name, bool is_histogram,
                                        std::vector<std::string> label_values) {
  const auto found =
      std::find_if(catalogue_.begin(), catalogue_.end(), [&](const Metric& m) { return m.name == name; });
  assert(found != catalogue_.end() && "a metric that is not in the catalogue");
  if (found == catalogue_.end()) return nullptr;
  std::vector<std::string> names = LabelNames(*found);
  const bool fits = names.size() == label_values.size() && (found->kind == Kind::kHistogram) == is_histogram;
  assert(fits && "another kind or other labels than the catalogue says");
  if (!fits) return nullptr;
  prometheus::ClientMetric& metric = families_[found - catalogue_.begin()].metric.emplace_back();
  for (std::size_t i = 0; i < names.size(); ++i) {
    metric.label.push_back({std::move(names[i]), std::move(label_values[i])});
  }
  return &metric;
}

void Families::Set(absl::string_view name, double value, std::vector<std::string> label_values) {
  prometheus::ClientMetric* metric = Add(name, /*is_histogram=*/false, std::move(label_values));
  // The family's type says which of them is read.
  if (metric != nullptr) metric->counter.value = metric->gauge.value = value;
}

void Families::Set(absl::string_view name, const Histogram& histogram, std::vector<std::string> label_values) {
  prometheus::ClientMetric* metric = Add(name, /*is_histogram=*/true, std::move(label_values));
  if (metric != nullptr) metric->histogram = histogram.Read();
}

std::vector<prometheus::MetricFamily> Families::Take() {
  families_.erase(std::remove_if(families_.begin(), families_.end(), [](const auto& f) { return f.metric.empty(); }),
                  families_.end());
  return std::move(families_);
}

std::string MarkdownTable(Catalogue catalogue) {
  std::string table = "| name | type | labels | meaning |\n|---|---|---|---|\n";
  for (const Metric& metric : catalogue) {
    std::vector<std::string> labels;
    for (const std::string& label : LabelNames(metric)) labels.push_back(absl::StrCat("`", label, "`"));
    absl::StrAppend(&table, "| `", metric.name, "` | ", NameOf(metric.kind), " | ", absl::StrJoin(labels, ", "), " | ",
                    metric.help, " |\n");
  }
  return table;
}

}  // namespace resbm::metrics
