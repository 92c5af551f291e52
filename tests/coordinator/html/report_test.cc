#include "coordinator/html/report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_files.h"
#include "tests/coordinator/html/example_reports.h"

namespace resbm::coordinator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::TempDirectory;

void WriteRun(const TempDirectory& folder, const ExampleReport& example) {
  folder.Write("job.textproto", ExampleReportJob(example));
  folder.Write("summary.json", ExampleReportSummary(example));
  folder.Write("metrics.jsonl", ExampleReportMetrics(example));
}

TEST(Report, IsMadeOfARunDirectory) {
  const TempDirectory folder;
  WriteRun(folder, {});
  const auto without = ReadReportRun(folder.path());
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_FALSE(without->trace.has_value());
  folder.Write("trace.json", ExampleTrace(2, 4));
  const auto run = ReadReportRun(folder.path());
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(run->trace.has_value());
  EXPECT_EQ(run->trace->steps.size(), 4u);
  EXPECT_THAT(MakeReport({*run}, {}), HasSubstr("<title>a</title>"));
  EXPECT_THAT(MakeReport({*run}, {"B & C", "", ""}), HasSubstr("<title>B &amp; C</title>"));
}

TEST(Report, ADamagedTraceIsNamed) {
  const TempDirectory folder;
  WriteRun(folder, {});
  folder.Write("trace.json", "{\"traceEvents\":[");
  const auto run = ReadReportRun(folder.path());
  EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(run.status().message(), HasSubstr("trace.json"));
}

TEST(Report, OfNothingThereIsNone) {
  EXPECT_EQ(ReadReportRun("/nowhere/at/all").status().code(), absl::StatusCode::kNotFound);
}

TEST(Report, TheJobsTextCannotBreakIt) {
  ExampleReport evil;
  evil.name = "</script><script>alert(1)</script>";
  EXPECT_THAT(MakeReport({MakeExampleReport(evil)}, {}), Not(HasSubstr("<script>alert")));
}

}  // namespace
}  // namespace resbm::coordinator
