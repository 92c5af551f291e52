// A run that is watched from outside: `resbm status`, /metrics of the coordinator and of the stages.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/http_get.h"
#include "tests/support/program_test.h"

namespace resbm {
namespace {

using nlohmann::json;
using testing::Finished;
using ::testing::HasSubstr;
using testing::HttpGet;
using testing::ParseSamples;
using testing::RunProgram;
using testing::Strings;
using testing::Subprocess;
using testing::WaitUntil;

// Two stage servers, and a run over them that goes on until it is stopped.
class Watched : public testing::ImageProgramTest {
 protected:
  Watched() : ImageProgramTest(40, 10), run_(Path("run")) {
    WriteJob("optimizer { sgd {} }\n");
    for (int s = 0; s < 2; ++s) {
      servers_.push_back(StartStage(&addresses_.emplace_back(), {"--metrics-listen", "127.0.0.1:0"}));
      metrics_.push_back(servers_[s]->WaitForLine("METRICS "));
      EXPECT_NE(metrics_[s], "");
    }
  }
  void TearDown() override {
    training_.reset();
    servers_.clear();
    ImageProgramTest::TearDown();
  }

  std::string Stages() const { return absl::StrCat(addresses_[0], ",", addresses_[1]); }
  Strings TrainCommand(const Strings& more) const {
    Strings arguments = {"train",  "--job", Path("job.textproto"), "--run-dir", run_, "--stages",
                         Stages(), "--set", "run.steps=1000000"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Resbm(arguments);
  }
  // Until its first step is committed.
  void StartTraining() {
    training_ = std::make_unique<Subprocess>(TrainCommand({"--metrics-listen", "127.0.0.1:0"}));
    ASSERT_TRUE(WaitForRows(training_.get(), "run", 1));
  }

  Finished Status(Strings more) {
    more.insert(more.begin(), "status");
    return Run(more);
  }
  json StatusJson(int code = 0) {
    const Finished status = Status({run_, "--json"});
    EXPECT_EQ(status.code, code) << status.err;
    return json::parse(status.out, nullptr, /*allow_exceptions=*/false);
  }

  static std::string Doing(const json& status, int stage) {
    return status.at("stages").at(stage).value("doing", "no answer");
  }

  const std::string run_;
  std::vector<std::unique_ptr<Subprocess>> servers_;
  std::vector<std::string> addresses_, metrics_;
  std::unique_ptr<Subprocess> training_;
};

TEST_F(Watched, FreeStageServersSayThatTheyAreFree) {
  const Finished status = Status({"--stages", Stages()});
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_THAT(status.out, HasSubstr(addresses_[0]));
  EXPECT_THAT(status.out, HasSubstr(addresses_[1]));
  EXPECT_THAT(status.out, HasSubstr("free"));
  EXPECT_EQ(status.err, "");
}

TEST_F(Watched, ARunIsSeenByItsDirectoryWhileItTrainsAndAfterItsEnd) {
  StartTraining();
  json live = StatusJson();
  EXPECT_EQ(live["run"]["ended"], false);
  EXPECT_EQ(live["run"]["coordinator_pid"], training_->pid());
  EXPECT_GE(live["run"]["step"], 1);
  EXPECT_EQ(live["run"]["total_steps"], 1000000);
  ASSERT_EQ(live["stages"].size(), 2u);
  for (int s = 0; s < 2; ++s) {
    json stage = live["stages"][s];
    EXPECT_EQ(stage["address"], addresses_[s]);
    EXPECT_EQ(stage["job"], live["run"]["job"]);
    EXPECT_EQ(stage["stage"], s);
    EXPECT_EQ(stage["stages"], 2);
    EXPECT_EQ(stage["fence"], "1.1");
    EXPECT_EQ(stage["up"]["connected"], true);
    EXPECT_EQ(stage["down"]["connected"], true);
    EXPECT_GT(stage["uptime_seconds"], 0);
  }
  const Finished table = Status({run_});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr(" of 1000000, epoch "));
  EXPECT_THAT(table.out, HasSubstr("holds 2 of 2 stage servers"));

  training_->Signal(SIGINT);
  EXPECT_EQ(training_->Wait(), 130) << training_->Stderr();
  json ended = StatusJson();
  EXPECT_EQ(ended["run"]["ended"], true);
  EXPECT_TRUE(ended["stages"].empty());
}

TEST_F(Watched, AStageThatStandsStillIsNamedByItsNeighbour) {
  StartTraining();
  // In the middle of a step, most likely; between two steps its neighbour would wait for the coordinator.
  bool named = false;
  for (int tries = 0; tries < 20 && !named; ++tries) {
    servers_[1]->Signal(SIGSTOP);
    json status;
    EXPECT_TRUE(WaitUntil([&] {
      status = json::parse(Status({run_, "--json", "--timeout", "0.3"}).out);
      return status["stages"][1]["reachable"] == false && !absl::StrContains(Doing(status, 0), "computes");
    }));
    named = status["stages"][0].contains("waiting_for") && status["stages"][0]["waiting_for"]["neighbour"] == "stage 1";
    EXPECT_TRUE(named || absl::StrContains(Doing(status, 0), "waits for the coordinator")) << status;
    if (!named) servers_[1]->Signal(SIGCONT);
  }
  ASSERT_TRUE(named);
  const Finished table = Status({run_, "--timeout", "0.3"});
  EXPECT_EQ(table.code, 3);
  EXPECT_THAT(table.out, HasSubstr("from stage 1"));
  EXPECT_THAT(table.out, HasSubstr("does not answer in time"));
  // The metrics of the neighbour say the same, and for how long.
  const auto samples = ParseSamples(HttpGet(metrics_[0], "/metrics").body);
  EXPECT_EQ(samples.count("resbm_stage_waiting_seconds{end=\"down\"}"), 1u);
  const std::int64_t before = StatusJson(3)["run"]["step"];
  servers_[1]->Signal(SIGCONT);
  EXPECT_TRUE(WaitUntil([&] { return json::parse(Status({run_, "--json"}).out)["run"]["step"] > before; }));
  EXPECT_EQ(Status({run_}).code, 0);
}

TEST_F(Watched, AStageThatIsGoneDoesNotSpoilTheRest) {
  servers_[1]->Signal(SIGKILL);
  servers_[1]->Wait();
  const Finished status = Status({"--stages", Stages()});
  EXPECT_EQ(status.code, 3);
  EXPECT_THAT(status.out, HasSubstr("cannot be reached"));
  EXPECT_THAT(status.out, HasSubstr("free"));
}

TEST_F(Watched, MetricsOfBothSidesAgreeOnWhatCrossed) {
  StartTraining();
  const std::string prefix = "metrics: http://";
  std::string address;
  for (absl::string_view line : absl::StrSplit(training_->Stderr(), '\n')) {
    if (absl::StartsWith(line, prefix))
      address = std::string(line.substr(prefix.size(), line.rfind('/') - prefix.size()));
  }
  ASSERT_NE(address, "") << training_->Stderr();
  const std::string activations =
      "resbm_train_boundary_payload_bytes_total{boundary=\"group0.1\",direction=\"activations\"}";
  ASSERT_TRUE(WaitUntil([&] { return ParseSamples(HttpGet(address, "/metrics").body)["resbm_train_last_step"] >= 3; }));
  auto run = ParseSamples(HttpGet(address, "/metrics").body);
  // Later, so it has at least as much.
  auto upper = ParseSamples(HttpGet(metrics_[0], "/metrics").body);
  auto lower = ParseSamples(HttpGet(metrics_[1], "/metrics").body);
  EXPECT_GT(run["resbm_train_loss"], 0);
  EXPECT_GT(run["resbm_train_samples_total"], 0);
  EXPECT_EQ(run["resbm_train_steps_total{decision=\"apply\"}"], run["resbm_train_last_step"]);
  EXPECT_GT(run[activations], 0) << HttpGet(address, "/metrics").body;
  EXPECT_GE(upper["resbm_stage_link_payload_bytes_total{end=\"down\",direction=\"sent\"}"], run[activations]);
  EXPECT_GE(upper["resbm_stage_steps_total{decision=\"apply\"}"], run["resbm_train_last_step"]);
  EXPECT_GT(lower["resbm_stage_link_payload_bytes_total{end=\"up\",direction=\"received\"}"], 0);
  EXPECT_GT(lower["resbm_stage_memory_peak_bytes"], 0);
  EXPECT_EQ(lower.count("resbm_stage_memory_limit_bytes"), 0u);
}

TEST_F(Watched, AWatchWritesOneObjectALineAndEndsByCtrlC) {
  Subprocess watch(Resbm({"status", "--stages", Stages(), "--json", "--watch=0.1"}));
  EXPECT_TRUE(WaitUntil([&] {
    const std::string out = watch.Stdout();
    return std::count(out.begin(), out.end(), '\n') >= 3;
  }));
  watch.Signal(SIGINT);
  EXPECT_EQ(watch.Wait(), 130) << watch.Stderr();
  for (absl::string_view line : absl::StrSplit(watch.Stdout(), '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(json::parse(line.begin(), line.end(), nullptr, false).is_object()) << line;
  }
}

TEST_F(Watched, WrongUseIsCodeTwo) {
  for (const Strings& wrong : {Strings{},
                               {folder_, "--stages", Stages()},
                               {folder_ + "/nowhere"},
                               {folder_},
                               {"--stages", "nonsense"},
                               {"--stages", Stages(), "--watch=-1"},
                               {"--stages", Stages(), "--watch=soon"}}) {
    const Finished status = Status(wrong);
    EXPECT_EQ(status.code, 2) << status.out;
    EXPECT_THAT(status.err, HasSubstr("resbm status: "));
    EXPECT_EQ(status.out, "");
  }
}

TEST_F(Watched, AMetricsPortThatIsTakenIsCodeTwoAndLeavesNothing) {
  const Finished taken = RunProgram(TrainCommand({"--metrics-listen", metrics_[0]}));
  EXPECT_EQ(taken.code, 2);
  EXPECT_THAT(taken.err, HasSubstr(absl::StrCat("--metrics-listen: cannot listen on ", metrics_[0])));
  const Finished open = RunProgram(TrainCommand({"--metrics-listen", "0.0.0.0:0"}));
  EXPECT_EQ(open.code, 2);
  EXPECT_THAT(open.err, HasSubstr("--insecure"));
  EXPECT_FALSE(std::filesystem::exists(run_));
}

}  // namespace
}  // namespace resbm
