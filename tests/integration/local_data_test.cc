// End stages that read copies of the data of their own: the same weights, and copies that differ are refused.
#include <filesystem>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/program_test.h"
#include "tests/support/small_images.h"

namespace resbm {
namespace {

using testing::Finished;
using ::testing::HasSubstr;
using testing::RunProgram;
using testing::Strings;
using testing::Subprocess;
using testing::WriteFileOrDie;
using testing::WriteSmallMnist;

// Uneven on purpose, and cropped at random.
constexpr char kBatches[] = R"pb(
  batch { samples: 40 micro_batches: 3 }
  optimizer { sgd { learning_rate: 0.05 } }
  run { epochs: 2 evaluation_micro_batch: 7 }
)pb";

class LocalCopy : public testing::ImageProgramTest {
 protected:
  LocalCopy() : ImageProgramTest(90, 30) { WriteJob(kBatches); }

  // Two stage servers with these options, and `resbm` with theirs.
  Finished Train(const std::string& run_dir, const Strings& first, const Strings& last, const Strings& sets) {
    std::string a, b;
    const std::unique_ptr<Subprocess> up = StartStage(&a, first), down = StartStage(&b, last);
    Strings arguments = {"train", "--job", Path("job.textproto"), "--run-dir", Path(run_dir), "--stages", a + "," + b};
    const Strings more = Sets(sets);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
};

TEST_F(LocalCopy, GivesTheWeightsThatFedStagesGive) {
  const std::string copy = WriteSmallMnist(90, 30);
  ASSERT_EQ(RunProgram(TrainOf("job.textproto", "fed", 2)).code, 0);
  const Finished both = Train("both", {"--data", copy}, {"--data", copy}, {"data.local={}"});
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_EQ(Weights("both"), Weights("fed"));
  EXPECT_EQ(Summary("both")["top1"], Summary("fed")["top1"]);
  const Finished one = Train("one", {"--data", copy}, {}, {"data.local={targets: false}"});
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(Weights("one"), Weights("fed"));
  // Stage servers that resbm starts have none, and are fed.
  ASSERT_EQ(RunProgram(TrainOf("job.textproto", "local", 3, {"data.local={}"})).code, 0);
  EXPECT_EQ(Weights("local"), Weights("fed"));
}

TEST_F(LocalCopy, EvalReadsItToo) {
  const std::string copy = WriteSmallMnist(90, 30);
  ASSERT_EQ(RunProgram(TrainOf("job.textproto", "run", 1)).code, 0);
  std::string address;
  const auto stage = StartStage(&address, {"--data", copy});
  const Finished eval =
      Run({"eval", "--run-dir", Path("run"), "--stages", address, "--set", "data.local={}", "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(nlohmann::json::parse(eval.out)["validation_loss"], Summary("run")["validation_loss"]);
}

TEST_F(LocalCopy, OfTextIsFoundByItsName) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += i % 7 == 0 ? "to be " : "or not ";
  std::filesystem::create_directories(Path("here"));
  std::filesystem::create_directories(Path("there"));
  WriteFileOrDie(Path("here/play.txt"), text);
  WriteFileOrDie(Path("there/play.txt"), text);
  WriteFileOrDie(Path("job.textproto"),
                 R"pb(
                       name: "text"
                       model { transformer { layers: 2 width: 16 heads: 2 context: 16 dropout: 0.1 } }
                       boundary { kind: ADAPTER ratio: 4 }
                       cut_point { after: "block0" }
                       batch { samples: 8 micro_batches: 2 }
                       optimizer { adamw {} }
                       run { steps: 4 }
                       data { text { file: ")pb" +
                     Path("here/play.txt") + R"pb(" } }
  )pb");
  ASSERT_EQ(RunProgram(TrainOf("job.textproto", "fed", 2)).code, 0);
  const Finished run = Train("copy", {"--data", Path("there")}, {"--data", Path("there")}, {"data.local={}"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(Weights("copy"), Weights("fed"));
}

TEST_F(LocalCopy, ThatDiffersOrIsNotThereIsRefusedByName) {
  const std::string other = WriteSmallMnist(89, 30);
  const Finished differs = Train("differs", {"--data", data_}, {"--data", other}, {"data.local={}"});
  EXPECT_EQ(differs.code, 3);
  EXPECT_THAT(differs.err, HasSubstr("stage 1"));
  EXPECT_THAT(differs.err, HasSubstr("the training data here is not the coordinator's: 89 samples with hash "));
  const Finished none = Train("none", {}, {}, {"data.local={targets: false}"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("stage 0"));
  EXPECT_THAT(none.err, HasSubstr("start it with --data FOLDER"));
}

}  // namespace
}  // namespace resbm
