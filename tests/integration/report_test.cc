// `resbm train` and `resbm report` as processes: reports of runs that were really made, with a trace of theirs.
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/program_test.h"

namespace resbm {
namespace {

using nlohmann::json;
using testing::Finished;
using ::testing::HasSubstr;
using testing::ReadFileOrDie;
using testing::RunProgram;
using testing::Strings;

constexpr char kShort[] = R"pb(
  batch { samples: 40 micro_batches: 2 }
  optimizer { adamw { learning_rate: 0.01 } }
  run { epochs: 2 evaluation_micro_batch: 15 }
)pb";

class Report : public testing::ImageProgramTest {
 protected:
  Report() : ImageProgramTest(80, 30) { WriteJob(kShort); }

  std::string Train(const std::string& run_dir, int stages, const Strings& sets = {}) {
    const Finished run = RunProgram(TrainOf("job.textproto", run_dir, stages, sets));
    EXPECT_EQ(run.code, 0) << run.err;
    return Path(run_dir);
  }

  // What the page draws.
  static json DataOf(const std::string& path) {
    const std::string page = ReadFileOrDie(path);
    const std::string begin = "id=\"data\">";
    const std::size_t from = page.find(begin) + begin.size();
    return json::parse(page.substr(from, page.find("</script>", from) - from));
  }
};

TEST_F(Report, TrainWritesOneWithEverythingThatTheRunLeft) {
  const std::string path = Train("run", 2) + "/report.html";
  const json run = DataOf(path)["runs"][0];
  EXPECT_EQ(run["curves"]["loss"]["steps"], json({1, 2, 3, 4}));
  ASSERT_EQ(run["evaluations"].size(), 2u);
  EXPECT_EQ(run["evaluations"][0]["step"], 2);
  EXPECT_EQ(run["evaluations"][1]["top1"], run["figures"]["top1"]);
  EXPECT_EQ(run["stages"].size(), 2u);
  EXPECT_EQ(run["stages"][1]["server"]["version"], run["version"]);
  EXPECT_FALSE(run["stages"][1]["server"]["libtorch_version"].get<std::string>().empty());
  EXPECT_EQ(run["boundaries"].size(), 2u);
  EXPECT_FALSE(run["signals"].empty());
  EXPECT_THAT(run["started"].get<std::string>(), HasSubstr("T"));

  // The trace is the run's own: each stage takes each micro-batch forward and back in each step that is drawn.
  const json& timeline = run["timeline"];
  EXPECT_EQ(timeline["stages"], 2);
  EXPECT_EQ(timeline["traced"], json({1, 4}));
  const std::size_t steps = timeline["steps"].size();
  int forward = 0, commits = 0;
  std::set<int> lanes[2];
  for (const json& span : timeline["spans"]) {
    forward += span[2] == "forward";
    commits += span[2] == "commit";
    lanes[span[0].get<int>()].insert(span[1].get<int>());
  }
  EXPECT_EQ(forward, static_cast<int>(2 * 2 * steps));
  EXPECT_GE(commits, static_cast<int>(2 * (steps - 1)));  // the last step's is not traced
  EXPECT_TRUE(lanes[0].contains(0) && lanes[0].contains(1) && lanes[0].contains(2));  // computes, to stage 1, from it
  EXPECT_TRUE(lanes[1].contains(0) && lanes[1].contains(3) && lanes[1].contains(4));  // computes, to stage 0, from it

  // Both directions carry z in fp16.
  ASSERT_EQ(run["links"].size(), 2u);
  const double sent = run["links"][0]["bytes"].get<double>() / run["links"][0]["tensors"].get<double>();
  EXPECT_EQ(sent, run["links"][1]["bytes"].get<double>() / run["links"][1]["tensors"].get<double>());
  EXPECT_NEAR(sent, run["boundaries"][0]["payload_bytes"].get<double>() / 2, 1e-6);
}

TEST_F(Report, OfSeveralRunsGoesWhereItIsToldWithItsTitle) {
  const std::string base = Train("base", 1, {"boundary.kind=IDENTITY"});
  const std::string other = Train("other", 1, {"run.trace_steps=0"});
  const Finished made = Run({"report", base, other, "--output", Path("both.html"), "--title", "A & <b>"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.err, HasSubstr("both.html"));
  EXPECT_TRUE(made.out.empty());
  const json data = DataOf(Path("both.html"));
  EXPECT_EQ(data["title"], "A & <b>");
  EXPECT_EQ(data["comparison"]["arms"].size(), 2u);
  EXPECT_TRUE(data["runs"][0].contains("timeline"));
  EXPECT_FALSE(data["runs"][1].contains("timeline"));
  EXPECT_FALSE(data["runs"][0].contains("boundaries"));
}

TEST_F(Report, IsMadeAgainAndSaysWhatIsWrongWithARun) {
  const std::string run = Train("run", 1);
  std::filesystem::remove(run + "/report.html");
  EXPECT_EQ(Run({"report", run, "-q"}).code, 0);
  EXPECT_EQ(DataOf(run + "/report.html")["runs"].size(), 1u);
  const Finished twice = Run({"report", run, run + "/"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("given twice"));
  std::ofstream(run + "/trace.json") << "{";
  const Finished damaged = Run({"report", run});
  EXPECT_EQ(damaged.code, 2);
  EXPECT_THAT(damaged.err, HasSubstr("trace.json"));
  std::filesystem::remove(run + "/summary.json");
  const Finished unfinished = Run({"report", run});
  EXPECT_EQ(unfinished.code, 2);
  EXPECT_THAT(unfinished.err, HasSubstr("summary.json"));
}

}  // namespace
}  // namespace resbm
