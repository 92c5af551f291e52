#include "coordinator/html/report_data.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/coordinator/html/example_reports.h"

namespace resbm::coordinator {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Json = nlohmann::json;

Json DataOf(const std::vector<ExampleReport>& examples, const std::string& title = "") {
  std::vector<ReportRun> runs;
  for (const ExampleReport& example : examples) runs.push_back(MakeExampleReport(example));
  return Json::parse(ReportData(runs, {title, "2026-02-03T00:00:00+00:00", "0.1.0"}));
}

TEST(ReportData, ARunHasItsFiguresCurvesAndSettings) {
  const Json data = DataOf({{}});
  EXPECT_EQ(data["title"], "a");
  EXPECT_EQ(data["generated"], "2026-02-03T00:00:00+00:00");
  EXPECT_FALSE(data.contains("comparison"));
  const Json& run = data["runs"][0];
  EXPECT_EQ(run["name"], "a-1");
  EXPECT_EQ(run["path"], "runs/a-1");
  EXPECT_EQ(run["job"], ExampleReportJob({}));
  EXPECT_EQ(run["started"], "2026-01-02T03:04:05+00:00");
  EXPECT_EQ(run["is_text"], false);
  EXPECT_EQ(run["figures"]["final_loss"], 0.41);
  EXPECT_EQ(run["figures"]["bytes_per_step"], 2 * (8000 + 120));
  EXPECT_EQ(run["stages"][1]["peak_memory_bytes"]["activations"], 1'500'000);
  EXPECT_EQ(run["stages"][0]["server"]["libtorch_version"], "2.13.0");
  EXPECT_EQ(run["boundaries"][1]["direction"], "gradients");
  EXPECT_EQ(run["evaluations"].size(), 2u);
  EXPECT_EQ(run["evaluations"][1]["top1"], 0.8961);
  EXPECT_EQ(run["curves"]["loss"]["steps"].size(), 58u);  // two were skipped
  EXPECT_EQ(run["curves"]["learning_rate"]["steps"].size(), 60u);
  EXPECT_EQ(run["curves"]["step_seconds"]["values"].size(), 60u);
  EXPECT_EQ(run["curves"]["grad_norm"]["values"].size(), 58u);
  EXPECT_EQ(run["signals"]["group0.0"].size(), 4u);
  EXPECT_EQ(run["signals"]["group0.0"]["z_rms"]["values"][59], 2);
}

TEST(ReportData, SkippedStepsAreSaidWithTheirReasons) {
  const Json run = DataOf({{}})["runs"][0];
  EXPECT_EQ(run["skipped_steps"], 2);
  EXPECT_EQ(run["skipped"][0]["step"], 7);
  EXPECT_EQ(run["skipped"][1]["reasons"][0], "stage 1: 3 non-finite values in activations");
  EXPECT_FALSE(DataOf({{.has_skipped = false}})["runs"][0].contains("skipped"));
}

TEST(ReportData, ALongCurveIsSmoothed) {
  EXPECT_FALSE(DataOf({{}})["runs"][0].contains("smoothed"));
  const Json run = DataOf({{.steps = 500}})["runs"][0];
  EXPECT_EQ(run["smoothed"]["window"], 9);
  EXPECT_EQ(run["smoothed"]["steps"].size(), 498u);
}

TEST(ReportData, WhatARunDoesNotKnowIsAbsent) {
  const Json run = DataOf({{.has_trace = false, .is_one_stage = true, .is_old = true}})["runs"][0];
  for (const char* name :
       {"started", "version", "boundaries", "signals", "timeline", "links", "skipped", "step_seconds"}) {
    EXPECT_FALSE(run.contains(name)) << name;
  }
  EXPECT_EQ(run["curves"].size(), 1u);
  EXPECT_FALSE(run["figures"].contains("planned_step_seconds"));
  EXPECT_FALSE(run["figures"].contains("bytes_per_step"));
  EXPECT_FALSE(run["stages"][0].contains("gpu_utilization"));
  // Its last evaluation is in its figures.
  EXPECT_EQ(run["evaluations"].size(), 1u);
  EXPECT_EQ(run["evaluations"][0]["step"], 60);
  EXPECT_EQ(run["evaluations"][0]["loss"], 0.541);
}

TEST(ReportData, TheTimelineIsOfAFewTypicalStepsFromTheirStart) {
  const Json timeline = DataOf({{}})["runs"][0]["timeline"];
  EXPECT_EQ(timeline["stages"], 2);
  EXPECT_THAT(timeline["traced"], ElementsAre(1, 5));
  ASSERT_EQ(timeline["steps"].size(), 3u);
  EXPECT_EQ(timeline["steps"][0]["start"], 0);
  EXPECT_NE(timeline["typical"], 1);
  EXPECT_EQ(timeline["spans"].size(), 3 * 35u);
  EXPECT_EQ(timeline["spans"][0].dump(),
            "[0,0,\"forward\",\"F0\"," + timeline["steps"][0]["step"].dump() + ",0,0.0,4000.0,0]");
}

TEST(ReportData, TheLinksAreAsTraced) {
  const Json links = DataOf({{}})["runs"][0]["links"];
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].dump(), R"({"bytes":12544,"from":0,"send_us":2000.0,"tensors":16,"to":1,"transit_us":2000.0})");
  EXPECT_FALSE(DataOf({{.is_one_stage = true}})["runs"][0].contains("links"));
}

TEST(ReportData, SeveralRunsAreComparedWithTheFirst) {
  const Json data = DataOf({{.path = "runs/a-1", .ratio = 4}, {.path = "runs/b-1", .name = "b", .ratio = 16}});
  EXPECT_EQ(data["title"], "2 runs");
  const Json& arms = data["comparison"]["arms"];
  ASSERT_EQ(arms.size(), 2u);
  EXPECT_EQ(arms[1]["name"], "b");
  EXPECT_NEAR(arms[1]["figures"]["top1"]["difference"].get<double>(), -0.012, 1e-12);
  EXPECT_EQ(data["runs"][0]["arm"], 0);
  EXPECT_EQ(data["runs"][1]["arm"], 1);
  EXPECT_EQ(DataOf({{}, {.path = "runs/b"}}, "Mine")["title"], "Mine");
}

TEST(ReportData, RunsThatDifferInTheSeedAreOneArm) {
  const Json data = DataOf({{.path = "x/1", .seed = 1}, {.path = "x/2", .seed = 2}, {.path = "x/3", .seed = 3}});
  EXPECT_EQ(data["comparison"]["arms"].size(), 1u);
  EXPECT_EQ(data["comparison"]["arms"][0]["figures"]["top1"]["runs"], 3);
  for (const Json& run : data["runs"]) EXPECT_EQ(run["arm"], 0);
}

TEST(ReportData, RunsOfOneNameAreToldApartByTheEndsOfTheirPaths) {
  const Json data = DataOf({{.path = "/q/a/run"}, {.path = "/q/b/run", .ratio = 8}, {.path = "c/other", .ratio = 2}});
  EXPECT_EQ(data["runs"][0]["name"], "a/run");
  EXPECT_EQ(data["runs"][1]["name"], "b/run");
  EXPECT_EQ(data["runs"][2]["name"], "other");
  const Json odd = DataOf({{.path = "run"}, {.path = "x/run", .ratio = 8}, {.path = ".", .ratio = 2}});
  EXPECT_EQ(odd["runs"][0]["name"], "run");
  EXPECT_EQ(odd["runs"][1]["name"], "x/run");
  EXPECT_EQ(odd["runs"][2]["name"], ".");
}

TEST(ReportData, OfTextThereArePerplexityAndBitsAByte) {
  const Json run = DataOf({{.is_text = true}})["runs"][0];
  EXPECT_EQ(run["is_text"], true);
  EXPECT_TRUE(run["figures"].contains("perplexity"));
  EXPECT_EQ(run["figures"]["tokens_per_second"], 6400);
}

TEST(ReportData, ARunOfAHundredThousandStepsStaysSmall) {
  const std::string data = ReportData({MakeExampleReport({.steps = 100'000})}, {});
  EXPECT_LT(data.size(), 1'000'000u);
  const Json run = Json::parse(data)["runs"][0];
  EXPECT_LE(run["curves"]["loss"]["steps"].size(), 2000u);
  EXPECT_EQ(run["curves"]["loss"]["steps"].back(), 100'000);
}

TEST(ReportData, InvalidUtf8IsReplaced) {
  ReportRun run = MakeExampleReport({});
  run.record.job_text = "name: \"\xff\xfe\"";
  const Json data = Json::parse(ReportData({run}, {}));
  EXPECT_EQ(data["runs"][0]["job"], "name: \"\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace resbm::coordinator
