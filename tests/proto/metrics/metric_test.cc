#include "proto/metrics/metric.h"

#include <sstream>

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "proto/metrics/process_metrics.h"

namespace resbm::metrics {
namespace {

constexpr Metric kCatalogue[] = {
    {"a_bytes_total", Kind::kCounter, "end,direction", "Bytes."},
    {"a_loss", Kind::kGauge, "", "Loss."},
    {"a_step_seconds", Kind::kHistogram, "", "Steps."},
};

std::string Text(std::vector<prometheus::MetricFamily> families) {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

TEST(Families, WhatHasNoValueIsAbsent) {
  Families families(kCatalogue);
  EXPECT_EQ(Text(families.Take()), "");
}

TEST(Families, ValuesComeInTheCataloguesOrderWithTheirLabels) {
  Families families(kCatalogue);
  families.Set("a_loss", 0.5);
  families.Set("a_bytes_total", 7, {"up", "sent"});
  families.Set("a_bytes_total", 8, {"up", "received"});
  EXPECT_EQ(Text(families.Take()),
            "# HELP a_bytes_total Bytes.\n# TYPE a_bytes_total counter\n"
            "a_bytes_total{end=\"up\",direction=\"sent\"} 7\n"
            "a_bytes_total{end=\"up\",direction=\"received\"} 8\n"
            "# HELP a_loss Loss.\n# TYPE a_loss gauge\na_loss 0.5\n");
}

TEST(Families, AHistogramCountsEachValueOnceAndTheLargeOnesInTheLastBucket) {
  Histogram histogram;
  for (double seconds : {0.001, 0.005, 0.3, 1000.0}) histogram.Observe(seconds);
  Families families(kCatalogue);
  families.Set("a_step_seconds", histogram);
  const std::string text = Text(families.Take());
  EXPECT_NE(text.find("a_step_seconds_count 4\n"), std::string::npos) << text;
  EXPECT_NE(text.find("a_step_seconds_sum 1000.306\n"), std::string::npos) << text;
  EXPECT_NE(text.find("a_step_seconds_bucket{le=\"0.005\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("a_step_seconds_bucket{le=\"0.5\"} 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("a_step_seconds_bucket{le=\"600\"} 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("a_step_seconds_bucket{le=\"+Inf\"} 4\n"), std::string::npos) << text;
}

TEST(Families, TheTableNamesEveryMetric) {
  EXPECT_EQ(MarkdownTable(kCatalogue),
            "| name | type | labels | meaning |\n|---|---|---|---|\n"
            "| `a_bytes_total` | counter | `end`, `direction` | Bytes. |\n"
            "| `a_loss` | gauge |  | Loss. |\n"
            "| `a_step_seconds` | histogram |  | Steps. |\n");
}

TEST(ProcessMetrics, AreThoseOfThisProcess) {
  const auto families = ProcessFamilies();
  ASSERT_EQ(families.size(), ProcessMetrics().size());
  const double start = families[0].metric[0].gauge.value;
  EXPECT_GT(start, 1.6e9);  // 2020
  EXPECT_LE(start, static_cast<double>(time(nullptr)) + 2);
  EXPECT_GT(families[2].metric[0].gauge.value, 1e5) << "resident bytes";
}

}  // namespace
}  // namespace resbm::metrics
