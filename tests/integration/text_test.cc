// Language models as users train them: `resbm` and stage servers as processes, over real gRPC on loopback.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "proto/base/safetensors.h"
#include "tests/support/program_test.h"

namespace resbm {
namespace {

using nlohmann::json;
using testing::Finished;
using ::testing::HasSubstr;
using testing::RunProgram;
using testing::Strings;
using testing::WriteFileOrDie;

// Sentences that a small model soon predicts better than by letter frequencies. Always the same.
std::string Sentences(std::size_t bytes) {
  const char* words[] = {"the", "king", "and", "queen", "of", "night", "speaks", "to", "me", "no", "more"};
  std::string text;
  for (std::uint32_t random = 7; text.size() < bytes;) {
    random = random * 1664525u + 1013904223u;
    text += words[(random >> 16) % 11];
    text += (random >> 28) == 0 ? ".\n" : " ";
  }
  return text.substr(0, bytes);
}

// Three blocks, dropout, uneven micro-batches. Of the 2700 bytes to train on, 2699 are predicted: 168 samples of 16 and
// one with 11, so that one step has a micro-batch with masked targets.
std::string Job(const std::string& files, const std::string& more) {
  return R"pb(
           name: "small-gpt"
           seed: 5
           model { transformer { layers: 3 width: 16 heads: 2 context: 16 dropout: 0.1 } }
           boundary { ratio: 4 }
           cut_point {
             after: "block0"
             boundary { kind: ADAPTER projection: LEARNED }
           }
           cut_point {
             after: "block1"
             boundary { kind: IN_BRANCH projection: ORTHOGONAL }
           }
           data { text { file: ")pb" +
         files + R"pb(" } }
                      batch { samples: 25 micro_batches: 3 }
                      optimizer {
                        adamw { learning_rate: 0.01 }
                        clip_norm: 1
                        schedule { warmup_steps: 3 }
                      }
                      run { epochs: 2 evaluation_micro_batch: 7 }
         )pb" +
         more;
}

class Text : public testing::ProgramTest {
 protected:
  Text() {
    const std::string text = Sentences(3000);
    WriteFileOrDie(Path("a.txt"), text.substr(0, 1000));
    WriteFileOrDie(Path("b.txt"), text.substr(1000));
    WriteFileOrDie(Path("job.textproto"), Job(folder_, ""));
  }

  void Train(const std::string& run_dir, int stages, const Strings& sets = {}) {
    const Finished run = RunProgram(TrainOf("job.textproto", run_dir, stages, sets));
    EXPECT_EQ(run.code, 0) << run.err;
  }
};

TEST_F(Text, TheFirstLawHoldsWithDropoutMasksAndAllPlacementsOfTheBoundary) {
  Train("run1", 1);
  for (const int stages : {2, 3}) {
    const std::string dir = "run" + std::to_string(stages);
    Train(dir, stages);
    EXPECT_EQ(Weights(dir), Weights("run1")) << stages << " stages";
    EXPECT_EQ(Summary(dir)["validation_loss"], Summary("run1")["validation_loss"]);
  }
  Train("gpipe", 3, {"schedule.kind=GPIPE", "recompute=BOUNDARY"});
  EXPECT_EQ(Weights("gpipe"), Weights("run1"));
  Train("layers", 2, {"recompute=LAYERS", "recompute_layer=['embedding', 'block1', 'block2']"});
  EXPECT_EQ(Weights("layers"), Weights("run1"));
  // Dropout takes part.
  Train("dry", 1, {"model.transformer.dropout=0"});
  EXPECT_NE(Weights("dry"), Weights("run1"));
}

TEST_F(Text, TheSummaryHasPerplexityBitsAByteAndTokens) {
  Train("run", 2, {"run.epochs=8"});
  const json summary = Summary("run");
  const double loss = summary["validation_loss"];
  EXPECT_NEAR(summary["perplexity"].get<double>(), std::exp(loss), 1e-9);
  EXPECT_NEAR(summary["bits_per_byte"].get<double>(), loss / std::log(2.0), 1e-9);
  EXPECT_GT(summary["top1"].get<double>(), 0.1);
  EXPECT_GT(summary["tokens_per_second"].get<double>(), 0);
  // Better than knowing nothing (ln 256 = 5.5) and than the frequencies of the text's letters (2.8).
  EXPECT_LT(loss, 2.5);
  // Every byte but the first is predicted once an epoch: the masked ones are in no mean.
  std::int64_t tokens = 0, samples = 0;
  const std::vector<json> rows = Rows("run");
  ASSERT_EQ(rows.size(), 8u * 7);
  for (const json& row : rows) {
    tokens += row["tokens"].get<std::int64_t>();
    samples += row["samples"].get<std::int64_t>();
  }
  EXPECT_EQ(tokens, 8 * 2699);
  EXPECT_EQ(samples, 8 * 169);
}

TEST_F(Text, EvalAgreesWithTheRunWhateverTheMicroBatches) {
  Train("run", 2);
  const Finished eval = Run({"eval", "--run-dir", Path("run"), "--local-stages", "3", "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  const json out = json::parse(eval.out);
  EXPECT_EQ(out["validation_loss"], Summary("run")["validation_loss"]);
  EXPECT_EQ(out["tokens"], 299);
  EXPECT_EQ(out["bits_per_byte"], Summary("run")["bits_per_byte"]);
  const Finished other =
      Run({"eval", "--run-dir", Path("run"), "--local-stages", "1", "--json", "--set", "run.evaluation_micro_batch=1"});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_NEAR(json::parse(other.out)["validation_loss"].get<double>(), out["validation_loss"].get<double>(), 1e-5);
}

// Micro-batches with 16, 11 and 1 predicted bytes: the mean is over all of them, whatever the split.
TEST_F(Text, UnevenMasksAreExactForEveryNumberOfMicroBatches) {
  WriteFileOrDie(Path("job.textproto"), Job(Path("tiny"), R"pb(precision: FP32)pb"));
  WriteFileOrDie(Path("tiny"), Sentences(50));  // 49 predicted: 3 samples of 16 and one of 1
  const Strings sets = {"data.text.test_share=0", "run={steps: 3 evaluate: false}", "batch.samples=4",
                        "model.transformer.dropout=0", "wire={activations: FP32 gradients: FP32}"};
  std::vector<double> losses;
  for (const int micro_batches : {1, 2, 4}) {
    Strings set = sets;
    set.push_back("batch.micro_batches=" + std::to_string(micro_batches));
    const std::string dir = "run" + std::to_string(micro_batches);
    Train(dir, 2, set);
    for (const json& row : Rows(dir)) EXPECT_EQ(row["tokens"], 49);
    losses.push_back(Rows(dir).back()["loss"]);
  }
  EXPECT_NEAR(losses[1], losses[0], 1e-5);
  EXPECT_NEAR(losses[2], losses[0], 1e-5);
}

TEST_F(Text, OfTopKBothTensorsAreCounted) {
  const Strings sets = {"cut_point=[{after: 'block0' boundary {kind: TOPK ratio: 4}}]",
                        "run={steps: 3 evaluate: false}"};
  Train("run1", 1, sets);
  Train("run2", 2, sets);
  EXPECT_EQ(Weights("run2"), Weights("run1"));
  const json boundaries = Summary("run2")["boundaries"];
  ASSERT_EQ(boundaries.size(), 2u);
  // 4 of the 16 values at each of 16 positions of 25 samples: fp16 both ways, their places as int16 downstream.
  const int kept = 25 * 16 * 4;
  EXPECT_EQ(boundaries[0]["codec"], "fp16+int16");
  EXPECT_EQ(boundaries[0]["payload_bytes"], kept * (2 + 2));
  EXPECT_EQ(boundaries[1]["codec"], "fp16");
  EXPECT_EQ(boundaries[1]["payload_bytes"], kept * 2);
}

TEST_F(Text, Bf16HoldsTheFirstLawAndIsOnTheWire) {
  const Strings sets = {"precision=BF16", "run={steps: 4 evaluate: false}"};
  Train("run1", 1, sets);
  Train("run3", 3, sets);
  EXPECT_EQ(Weights("run3"), Weights("run1"));
  EXPECT_EQ(Summary("run3")["boundaries"][0]["codec"], "bf16");
  Train("fp32", 1, {"run={steps: 4 evaluate: false}"});
  EXPECT_NE(Weights("fp32"), Weights("run1"));
}

// What the coordinator counts without LibTorch is what the stages build.
TEST_F(Text, ThePlanCountsTheParametersThatTheModelHas) {
  int run = 0;
  for (const std::string boundary :
       {"kind: ADAPTER", "kind: ADAPTER ratio: 8", "kind: ADAPTER ratio: 2 projection: LEARNED", "kind: IN_BRANCH",
        "kind: IN_BRANCH projection: LEARNED", "kind: LINEAR", "kind: IDENTITY", "kind: TOPK"}) {
    const std::string dir = "run" + std::to_string(run++);
    Train(dir, 2,
          {"cut_point=[{after: 'block0' boundary {" + boundary + "}}, {after: 'block1'}]", "boundary.kind=LINEAR",
           "run={steps: 1 evaluate: false}"});
    std::int64_t planned = 0, built = 0;
    const json summary = Summary(dir);
    for (const json& stage : summary["stages"]) planned += stage["parameters"].get<std::int64_t>();
    const std::string bytes = Weights(dir);
    const auto file = ParseSafetensors(bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    for (const SafetensorsEntry& tensor : file->tensors) built += static_cast<std::int64_t>(tensor.data.size() / 4);
    EXPECT_EQ(built, planned) << boundary;
  }
}

TEST_F(Text, ThePresetTrainsOnAnyText) {
  const Finished init = Run({"init", "--preset", "byte-gpt", Path("preset.textproto")});
  ASSERT_EQ(init.code, 0) << init.err;
  const Finished run = Run({"train", "--job", Path("preset.textproto"), "--run-dir", Path("run"), "--local-stages", "2",
                            "--set", "data.text.file=['" + folder_ + "/a.txt']", "--set",
                            "model.transformer={layers: 4 width: 16 heads: 2 context: 8}", "--set", "run={steps: 2}"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("bits/byte"));
  EXPECT_THAT(run.err, HasSubstr("bits/byte, perplexity "));
}

TEST_F(Text, AFileThatIsNotThereIsOneClearLine) {
  const Finished run = Run({"train", "--job", Path("job.textproto"), "--set", "data.text.file=['/nowhere.txt']",
                            "--run-dir", Path("run"), "--local-stages", "2"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("data.text.file: /nowhere.txt"));
  EXPECT_FALSE(std::filesystem::exists(Path("run")));
}

}  // namespace
}  // namespace resbm
