// `resbm train` and `resbm eval` as processes, over real gRPC on loopback.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
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
using testing::RunProgram;
using testing::Strings;
using testing::Subprocess;
using testing::WaitUntil;
using testing::WriteFileOrDie;

// Uneven on purpose: 90 samples are two batches of 40 and one of 10, in 3 micro-batches each.
constexpr char kBatches[] = R"pb(
  batch { samples: 40 micro_batches: 3 }
  optimizer {
    sgd { learning_rate: 0.05 momentum: 0.9 nesterov: true weight_decay: 0.0005 }
    clip_norm: 1
  }
  run { epochs: 2 evaluation_micro_batch: 7 }
)pb";

// Goes on until it is stopped.
constexpr char kEndless[] = R"pb(
  batch { samples: 40 micro_batches: 4 }
  optimizer { sgd { learning_rate: 0.01 } }
  run { steps: 100000 evaluate: false }
)pb";

class Train : public testing::ImageProgramTest {
 protected:
  Train() : ImageProgramTest(90, 30) { WriteJob(kBatches); }

  Strings Command(const std::string& run_dir, const Strings& more) {
    Strings arguments = {"train", "--job", Path("job.textproto"), "--run-dir", Path(run_dir)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Resbm(arguments);
  }
};

TEST_F(Train, TwoAndThreeLocalStagesTrainAndTheLossFalls) {
  for (int stages : {2, 3}) {
    const std::string dir = "run" + std::to_string(stages);
    const Finished run = RunProgram(Command(dir, {"--local-stages", std::to_string(stages)}));
    ASSERT_EQ(run.code, 0) << run.err;
    const auto rows = Rows(dir);
    ASSERT_EQ(rows.size(), 6u);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i]["step"], i + 1);
      EXPECT_EQ(rows[i]["fence"], "1.1");
      EXPECT_EQ(rows[i]["skipped"], false);
      EXPECT_EQ(rows[i]["samples"], i % 3 == 2 ? 10 : 40);
    }
    EXPECT_LT(rows[4]["loss"].get<double>(), rows[0]["loss"].get<double>());
    EXPECT_THAT(run.out, HasSubstr("top-1"));
    EXPECT_EQ(StageServers(), 0);
  }
}

TEST_F(Train, WeightsAreBitEqualAtAnyNumberOfStagesAndUnderBothSchedules) {
  for (const std::string wire : {"FP16", "FP32"}) {
    std::string expected;
    double top1 = -1;
    for (const auto& [stages, schedule] : std::vector<std::pair<int, std::string>>{
             {1, "ONE_F_ONE_B"}, {2, "ONE_F_ONE_B"}, {3, "GPIPE"}, {4, "ONE_F_ONE_B"}}) {
      const std::string dir = wire + "-" + std::to_string(stages);
      const Finished run =
          RunProgram(Command(dir, {"--local-stages", std::to_string(stages), "--set", "schedule.kind=" + schedule,
                                   "--set", "wire.activations=" + wire, "--set", "wire.gradients=" + wire, "-q"}));
      ASSERT_EQ(run.code, 0) << run.err;
      if (expected.empty()) {
        expected = Weights(dir);
        top1 = Summary(dir)["top1"];
        ASSERT_GT(expected.size(), 1000u);
        continue;
      }
      EXPECT_EQ(Weights(dir), expected) << wire << " " << stages;
      EXPECT_EQ(Summary(dir)["top1"], top1);
    }
  }
}

TEST_F(Train, OtherBoundariesAndBlockwiseCodecsGiveBitEqualWeightsToo) {
  const std::vector<Strings> variants = {
      {"boundary.shortcut=TRANSMIT", "boundary.low_dim.attention=SELF_ATTENTION", "boundary.low_dim.depth=3",
       "boundary.low_dim.width=2", "wire.activations=INT8", "wire.gradients=INT4"},
      {"boundary.kind=LINEAR", "boundary.out_channels=12", "boundary.init.kind=KAIMING_FAN_IN", "wire.gradients=INT8"},
      {"boundary.kind=BOTTLENECK", "boundary.stride=2", "wire.activations=INT4"},
      {"boundary.kind=IDENTITY_BLOCK", "boundary.init.kind=TIED_ORTHOGONAL", "cut_point[1].boundary.kind=IDENTITY"},
      {"boundary.kind=TOPK", "model.resnet.norm=BATCH_NORM", "recompute=BOUNDARY",
       "optimizer.group=[{match: '*.bias' weight_decay: 0}, {match: 'group0.*' rate_ratio: 2}]"},
      {"precision=BF16", "recompute=LAYERS", "recompute_layer=['group0.1']", "model.resnet.group[0].block=RESBM",
       "model.resnet.group[0].resbm={ratio: 4 shortcut: DIRECT}"},
  };
  for (std::size_t v = 0; v < variants.size(); ++v) {
    for (const int stages : {1, 4}) {
      const std::string dir = "v" + std::to_string(v) + "-" + std::to_string(stages);
      const Finished run = RunProgram(TrainOf("job.textproto", dir, stages, variants[v]));
      ASSERT_EQ(run.code, 0) << run.err;
    }
    EXPECT_EQ(Weights("v" + std::to_string(v) + "-1"), Weights("v" + std::to_string(v) + "-4")) << variants[v][0];
  }
  // Signals of all cut points, the same wherever the model is cut.
  ASSERT_EQ(Rows("v0-4")[0]["signals"].size(), 3u);
  EXPECT_GT(Rows("v0-4")[0]["signals"]["group0.1"]["z_effective_rank"], 1);
  EXPECT_EQ(Rows("v0-4")[0]["signals"], Rows("v0-1")[0]["signals"]);
  // 8 channels of 14 x 14 after group0.1; r = 4, twice for the transmitted shortcut: 784 values a sample, 68 bytes for
  // 64. Micro-batches of 14, 13, 13 and 4, 3, 3 samples; a mean step of two of 40 and one of 10 samples.
  const json down = Summary("v0-4")["boundaries"][2];
  EXPECT_EQ(down["codec"], "int8");
  const auto bytes = [](int samples) { return samples * 784 + 4 * ((samples * 784 + 63) / 64); };
  EXPECT_NEAR(down["payload_bytes"].get<double>(),
              (2.0 * (bytes(14) + bytes(13) + bytes(13)) + bytes(4) + bytes(3) + bytes(3)) / 3, 1);
}

TEST_F(Train, EvaluationsLeaveNoTraceInTheWeights) {
  ASSERT_EQ(RunProgram(Command("with", {"--local-stages", "2"})).code, 0);
  ASSERT_EQ(RunProgram(Command("without", {"--local-stages", "2", "--set", "run.evaluate=false"})).code, 0);
  ASSERT_EQ(RunProgram(Command("other", {"--local-stages", "2", "--set", "run.evaluation_micro_batch=30"})).code, 0);
  EXPECT_EQ(Weights("with"), Weights("without"));
  EXPECT_EQ(Weights("with"), Weights("other"));
}

TEST_F(Train, TheSummaryCountsEveryByteAtTheCut) {
  WriteJob(R"pb(
    batch { samples: 32 micro_batches: 2 }
    optimizer {
      adamw { learning_rate: 0.002 }
      schedule { one_cycle {} }
    }
    run { steps: 2 evaluate: false }
  )pb");
  const Finished run = RunProgram(
      Command("run", {"--local-stages", "2", "--set", "partition={stage { cut_after: 'group0.1' } stage {}}"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const json summary = Summary("run");
  // 8 channels of 14 x 14 after group0.1, r = 4.
  const double elements = 32.0 * 8 * 14 * 14;
  ASSERT_EQ(summary["boundaries"].size(), 2u);
  for (const json& b : summary["boundaries"]) {
    EXPECT_EQ(b["payload_bytes"], elements * 2 / 4);
    EXPECT_EQ(b["uncompressed_bytes"]["fp16"], elements * 2);
    EXPECT_EQ(b["uncompressed_bytes"]["fp32"], elements * 4);
    EXPECT_EQ(b["ratio"], 4);
    EXPECT_GT(b["metadata_bytes"].get<double>(), 0);
    EXPECT_LT(b["metadata_bytes"].get<double>() / b["payload_bytes"].get<double>(), 0.03);
  }
  EXPECT_TRUE(summary["top1"].is_null());
  for (const json& stage : summary["stages"]) {
    EXPECT_GT(stage["forward_seconds"].get<double>(), 0);
    EXPECT_GT(stage["backward_seconds"].get<double>(), 0);
    EXPECT_GT(stage["peak_memory_bytes"]["weights"].get<double>(), 0);
  }
}

TEST_F(Train, EvalGivesTheFiguresOfTheRunAtAnotherNumberOfStages) {
  ASSERT_EQ(RunProgram(Command("run", {"--local-stages", "2"})).code, 0);
  const Finished eval = Run({"eval", "--run-dir", Path("run"), "--local-stages", "3", "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  const json result = json::parse(eval.out);
  EXPECT_EQ(result["samples"], 30);
  EXPECT_EQ(result["top1"], Summary("run")["top1"]);
  EXPECT_EQ(result["validation_loss"], Summary("run")["validation_loss"]);
  EXPECT_EQ(StageServers(), 0);
}

TEST_F(Train, StageServersStartedByHandServeOneRunAfterTheOther) {
  std::string a, b;
  auto first = StartStage(&a);
  auto second = StartStage(&b);
  for (const std::string dir : {"one", "two"}) {
    const Finished run = RunProgram(Command(dir, {"--stages", a + "," + b}));
    ASSERT_EQ(run.code, 0) << run.err;
  }
  EXPECT_EQ(Weights("one"), Weights("two"));
  first->Signal(SIGTERM);
  EXPECT_EQ(first->Wait(), 0);
  EXPECT_TRUE(second->running());
}

TEST_F(Train, ABusyStageServerSaysWhoHoldsIt) {
  WriteJob(kEndless);
  std::string a, b;
  auto first = StartStage(&a);
  auto second = StartStage(&b);
  Subprocess holder(Command("holder", {"--stages", a + "," + b}));
  ASSERT_TRUE(WaitForRows(&holder, "holder", 3));
  const Finished late = RunProgram(Command("late", {"--stages", a + "," + b}));
  EXPECT_EQ(late.code, 3) << late.err;
  EXPECT_THAT(late.err, HasSubstr("small-"));
  EXPECT_FALSE(std::filesystem::exists(Path("late")));
  EXPECT_TRUE(holder.running());
  holder.Signal(SIGINT);
  EXPECT_EQ(holder.Wait(), 130);
}

TEST_F(Train, AnInterruptEndsTheStepAndSavesTheWeights) {
  WriteJob(kEndless);
  Subprocess run(Command("run", {"--local-stages", "2"}));
  ASSERT_TRUE(WaitForRows(&run, "run", 3));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 130) << run.Stderr();
  EXPECT_GT(Weights("run").size(), 1000u);
  EXPECT_EQ(Summary("run")["steps"], Rows("run").size());
  EXPECT_EQ(StageServers(), 0);
}

TEST_F(Train, AnInterruptBeforeTheRunBeginsEndsItQuietly) {
  WriteJob(kEndless);
  // A stage server that interrupts its coordinator, which still waits for it to listen.
  const std::string interrupts = Path("interrupts");
  WriteFileOrDie(interrupts, "#!/bin/sh\nkill -INT $PPID\nexec " + stage_server_ + " \"$@\"\n");
  std::filesystem::permissions(interrupts, std::filesystem::perms::owner_all);
  const Finished run = RunProgram({resbm_, "train", "--job", Path("job.textproto"), "--run-dir", Path("run"),
                                   "--local-stages", "1", "--stage-server", interrupts, "--device", "cpu"});
  EXPECT_EQ(run.code, 130) << run.err;
  EXPECT_THAT(run.err, HasSubstr("interrupted before the run began"));
  EXPECT_FALSE(std::filesystem::exists(Path("run"))) << "nothing came of it";
  EXPECT_EQ(StageServers(), 0);
}

TEST_F(Train, AKilledStageEndsTheRunByNameWhileTheOthersLiveOn) {
  WriteJob(kEndless);
  std::string a, b, c;
  auto first = StartStage(&a);
  auto second = StartStage(&b);
  auto third = StartStage(&c);
  Subprocess run(Command("run", {"--stages", a + "," + b + "," + c}));
  ASSERT_TRUE(WaitForRows(&run, "run", 3));
  second->Signal(SIGKILL);
  EXPECT_EQ(run.Wait(), 3) << run.Stderr();
  EXPECT_THAT(run.Stderr(), HasSubstr("stage 1"));
  EXPECT_TRUE(first->running());
  EXPECT_TRUE(third->running());
}

TEST_F(Train, AKilledCoordinatorLeavesNoLocalStageServer) {
  WriteJob(kEndless);
  Subprocess run(Command("run", {"--local-stages", "2"}));
  ASSERT_TRUE(WaitForRows(&run, "run", 3));
  EXPECT_EQ(StageServers(), 2);
  run.Signal(SIGKILL);
  EXPECT_TRUE(WaitUntil([&] { return StageServers() == 0; }, absl::Seconds(10)));
}

}  // namespace
}  // namespace resbm
