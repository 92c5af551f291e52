#include "tests/metrics/metrics_page.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/support/subprocess.h"

namespace resbm {
namespace {

TEST(MetricsPage, SaysWhatTheProgramsExpose) {
  EXPECT_EQ(testing::ReadFileOrDie("docs/metrics.md"), MetricsPage()) << "bazel run //tests/metrics:update_page";
}

// https://prometheus.io/docs/practices/naming/
TEST(Catalogues, FollowPrometheusRules) {
  std::set<std::string> names;
  for (const metrics::Catalogue catalogue :
       {stage_server::StageMetrics(), coordinator::RunMetricsCatalogue(), metrics::ProcessMetrics()}) {
    for (const metrics::Metric& metric : catalogue) {
      const std::string name(metric.name);
      EXPECT_TRUE(names.insert(name).second) << name << " is there twice";
      EXPECT_TRUE(absl::EndsWith(metric.help, ".")) << name;
      EXPECT_EQ(absl::EndsWith(name, "_total"), metric.kind == metrics::Kind::kCounter) << name;
      EXPECT_TRUE(absl::StartsWith(name, "resbm_stage_") || absl::StartsWith(name, "resbm_train_") ||
                  absl::StartsWith(name, "process_"))
          << name;
      for (const char* unit : {"_ms", "_milliseconds", "_kb", "_mb", "_percent"}) {
        EXPECT_FALSE(absl::StrContains(name, unit)) << name;
      }
      if (absl::EndsWith(name, "_info")) {
        EXPECT_NE(metric.labels, "") << name;
      }
    }
  }
  EXPECT_GT(names.size(), 50u);
}

}  // namespace
}  // namespace resbm
