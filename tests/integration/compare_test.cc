// `resbm compare`, `verify` and `sweep` as processes, on runs that they and `train` really made.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/program_test.h"

namespace resbm {
namespace {

using nlohmann::json;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ReadFileOrDie;
using testing::RunProgram;
using testing::Strings;
using testing::Subprocess;
using testing::WaitUntil;

// 80 samples: two steps an epoch.
constexpr char kShort[] = R"pb(
  batch { samples: 40 micro_batches: 2 }
  optimizer {
    adamw { learning_rate: 0.01 }
    clip_norm: 1
  }
  run { epochs: 3 evaluation_micro_batch: 15 }
)pb";

class Commands : public testing::ImageProgramTest {
 protected:
  Commands() : ImageProgramTest(80, 30) { WriteJob(kShort); }

  // With the job, in local stages.
  Strings Command(const std::string& command, int stages, const Strings& more) {
    Strings arguments = {command, "--job", Path("job.textproto"), "--local-stages", std::to_string(stages)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Resbm(arguments);
  }

  std::string Train(const std::string& run_dir, int stages, const Strings& sets = {}) {
    const Finished run = RunProgram(TrainOf("job.textproto", run_dir, stages, sets));
    EXPECT_EQ(run.code, 0) << run.err;
    return Path(run_dir);
  }
};

TEST_F(Commands, CompareGroupsSeedsAndFailsTheGateThatIsBroken) {
  const std::string base = Train("base", 2, {"boundary.kind=IDENTITY"});
  const std::string one = Train("one", 2);
  const std::string two = Train("two", 2, {"seed=4"});
  for (const Strings& twice : {Strings{one, one + "/"}, {"--arm", "r16=" + one + "," + one}}) {
    Strings arguments = {"compare", base};
    arguments.insert(arguments.end(), twice.begin(), twice.end());
    const Finished refused = Run(arguments);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("is given twice; a run counts once"));
  }
  const Finished table = Run({"compare", base, one, two, "--csv", Path("out.csv")});
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("kind=IDENTITY"));
  EXPECT_THAT(table.out, HasSubstr("no verdict: 1 seed, 3 are needed"));
  EXPECT_THAT(table.out, HasSubstr("seeds 3, 4, not 3 as for kind=IDENTITY"));
  EXPECT_THAT(ReadFileOrDie(Path("out.csv")), HasSubstr("\nkind=RESBM,bytes_per_step,2,"));

  const Strings gates = {"--gate", "bytes_rise=-50", "--gate", "samples_per_second_drop=-1000000"};
  Strings argv = {"compare", "--json", "--arm", "a=" + base, "--arm", "b=" + one + "," + two};
  argv.insert(argv.end(), gates.begin(), gates.end());
  const Finished gated = Run(argv);
  EXPECT_EQ(gated.code, 1);
  EXPECT_THAT(gated.err, HasSubstr("gate failed: b: samples_per_second_drop"));
  EXPECT_THAT(gated.err, Not(HasSubstr("bytes_rise")));
  const json out = json::parse(gated.out);
  ASSERT_EQ(out["arms"].size(), 2u);
  // r = 4 in fp16 in both arms; the larger message carries less metadata per byte.
  const double ratio = out["arms"][0]["figures"]["bytes_per_step"]["mean"].get<double>() /
                       out["arms"][1]["figures"]["bytes_per_step"]["mean"].get<double>();
  EXPECT_NEAR(ratio, 4, 0.3);
  EXPECT_EQ(out["arms"][1]["seeds"], json({3, 4}));
  EXPECT_EQ(out["gates"][0]["passed"], true);
}

TEST_F(Commands, CompareRefusesWhatIsNoRun) {
  for (const Strings& argv : std::vector<Strings>{{"compare"},
                                                  {"compare", Path("nowhere")},
                                                  {"compare", folder_},
                                                  {"compare", folder_, "--gate", "nonsense=1"},
                                                  {"compare", "--arm", "x"}}) {
    const Finished run = Run(argv);
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr("resbm compare: "));
    EXPECT_EQ(run.out, "");
  }
}

TEST_F(Commands, VerifyFindsThePipelineEqualInEveryBit) {
  const Finished run = RunProgram(Command("verify", 3, {"--steps", "4"}));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("equal in every bit: 1 stage and 3 stages, 4 steps"));
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 1);
}

TEST_F(Commands, VerifySaysWhereADifferenceBegins) {
  const Finished run =
      RunProgram(Command("verify", 2, {"--json", "--split-set", "optimizer.adamw.learning_rate=0.011"}));
  EXPECT_EQ(run.code, 1) << run.err;
  const json out = json::parse(run.out);
  EXPECT_EQ(out["equal"], false);
  // The first step is computed before the rate has any effect.
  EXPECT_THAT(out["first_difference"].get<std::string>(), HasSubstr("step 2: loss"));
  EXPECT_GT(out["gradients"].size(), 0u);
  EXPECT_EQ(out["weights"].size(), out["tensors"].get<std::size_t>());
}

TEST_F(Commands, VerifyComparesTwoRunsThatAreThere) {
  const std::string a = Train("a", 1);
  const std::string b = Train("b", 2);
  const std::string c = Train("c", 1, {"seed=4"});
  EXPECT_EQ(Run({"verify", "--run-dir", a, "--against", b}).code, 0);
  const Finished other = Run({"verify", "--run-dir", a, "--against", c});
  EXPECT_EQ(other.code, 1) << other.err;
  EXPECT_THAT(other.out, HasSubstr("NOT EQUAL"));
  EXPECT_THAT(other.out, HasSubstr("step 1: loss"));
  EXPECT_EQ(Run({"verify", "--run-dir", a}).code, 2);
  EXPECT_EQ(Run({"verify"}).code, 2);
}

TEST_F(Commands, VerifyWithOneStageIsNoVerification) {
  const Finished run = RunProgram(Command("verify", 1, {"-q"}));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("nothing was split"));
}

TEST_F(Commands, SweepTrainsEachValueAndGivesAdvice) {
  const Finished run = RunProgram(Command(
      "sweep", 2, {"--values", "2,8", "--seeds", "1", "--fraction", "0.5", "--budget", "100", "--runs", Path("r")}));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("50 % of the training data"));
  EXPECT_THAT(run.out, HasSubstr("no verdict: 1 seed an arm"));
  const json sweep = json::parse(ReadFileOrDie(Path("r/small-sweep-1/sweep.json")));
  EXPECT_EQ(sweep["complete"], true);
  EXPECT_EQ(sweep["training_samples"], 40);
  EXPECT_EQ(sweep["chosen"], "ratio=8");  // everything is within 100 points
  ASSERT_EQ(sweep["arms"].size(), 3u);
  for (const json& arm : sweep["arms"]) {
    ASSERT_EQ(arm["runs"].size(), 1u);
    // One step an epoch of the 40 samples.
    EXPECT_EQ(json::parse(ReadFileOrDie(arm["runs"][0].get<std::string>() + "/summary.json"))["steps"], 3);
  }
  // At the three cut points r = 8 sends a quarter of what r = 2 sends.
  const json& arms = sweep["comparison"]["arms"];
  EXPECT_EQ(arms[1]["figures"]["planned_bytes_per_sample"]["mean"].get<double>(),
            4 * arms[2]["figures"]["planned_bytes_per_sample"]["mean"].get<double>());
}

TEST_F(Commands, SweepChecksEveryArmBeforeTheFirstIsTrained) {
  const Finished run = RunProgram(Command("sweep", 2, {"--values", "2,3", "--runs", Path("r")}));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("3 does not divide 8 channels"));
  EXPECT_FALSE(std::filesystem::exists(Path("r")));
}

TEST_F(Commands, SweepRefusesAFieldThatChangesNothing) {
  const Finished run =
      RunProgram(Command("sweep", 2, {"--field", "boundary.low_dim.depth", "--values", "1,3", "--baseline", "none",
                                      "--set", "boundary.kind=LINEAR", "--runs", Path("r")}));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("depth=1 and depth=3 train the same: boundary.low_dim.depth changes nothing there"));
  EXPECT_FALSE(std::filesystem::exists(Path("r")));
}

TEST_F(Commands, SweepEndsAHopelessArm) {
  // At a rate of 30 the loss explodes; 20 steps, so that there are tenths.
  const Finished run = RunProgram(Command("sweep", 2,
                                          {"--field", "optimizer.adamw.learning_rate", "--values", "0.01,30", "--seeds",
                                           "2", "--fraction", "1", "--set", "run.steps=20", "--runs", Path("r")}));
  ASSERT_EQ(run.code, 0) << run.err;
  const json sweep = json::parse(ReadFileOrDie(Path("r/small-sweep-1/sweep.json")));
  EXPECT_EQ(sweep["arms"][0]["ended"], 2);
  EXPECT_EQ(sweep["arms"][1]["stopped_early"], true);
  EXPECT_EQ(sweep["arms"][1]["ended"], 1);  // the second seed was not tried
  EXPECT_TRUE(sweep["chosen"].is_null());
  EXPECT_THAT(run.out, HasSubstr("did not converge and was stopped"));
}

TEST_F(Commands, AnInterruptedSweepKeepsWhatEnded) {
  Subprocess run(Command("sweep", 2, {"--values", "2,4", "--seeds", "50", "--runs", Path("r")}));
  const std::string file = Path("r/small-sweep-1/sweep.json");
  ASSERT_TRUE(WaitUntil([&] { return std::filesystem::exists(file) || !run.running(); }));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 130) << run.Stderr();
  const json sweep = json::parse(ReadFileOrDie(file));
  EXPECT_EQ(sweep["complete"], false);
  EXPECT_GE(sweep["arms"][0]["ended"].get<int>(), 1);
  EXPECT_LT(sweep["arms"][0]["ended"].get<int>(), 50);
  EXPECT_THAT(sweep["advice"].dump(), HasSubstr("not trained: ratio=2, ratio=4; of those that were:"));
}

}  // namespace
}  // namespace resbm
