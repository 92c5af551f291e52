// `resbm train` from given weights, over real gRPC on loopback: what comes from the file, what from the seed, and
// what a file that does not fit is answered.
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/base/safetensors.h"
#include "tests/support/small_images.h"
#include "tests/support/subprocess.h"

namespace resbm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::CountProcesses;
using testing::Finished;
using testing::NewFolder;
using testing::ReadFileOrDie;
using testing::RunProgram;
using testing::SmallMnistJob;
using testing::WriteFileOrDie;
using testing::WriteSmallMnist;

// A rate that is 0 as a float, so that every weight stays as it is: what a run started from is what it saves.
constexpr char kFrozen[] = R"pb(
  batch { samples: 20 micro_batches: 2 }
  optimizer { sgd { learning_rate: 1e-60 } }
  run { steps: 1 evaluate: false }
)pb";
constexpr char kTraining[] = R"pb(
  batch { samples: 20 micro_batches: 3 }
  optimizer { muon { learning_rate: 0.02 adamw { learning_rate: 0.002 } } clip_norm: 1 }
  run { steps: 2 evaluate: false }
)pb";

class InitFrom : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { data_ = new std::string(WriteSmallMnist(40, 10)); }

  void SetUp() override {
    folder_ = NewFolder("init-from");
    resbm_ = testing::RunfileFromEnvironment("RESBM");
    stage_server_ = folder_ + "/stage_server";
    std::filesystem::create_symlink(testing::RunfileFromEnvironment("STAGE_SERVER"), stage_server_);
    WriteFileOrDie(folder_ + "/frozen.textproto", SmallMnistJob(*data_, kFrozen));
    WriteFileOrDie(folder_ + "/training.textproto", SmallMnistJob(*data_, kTraining));
  }
  void TearDown() override { EXPECT_EQ(CountProcesses(stage_server_), 0); }

  Finished Train(const std::string& job, const std::string& run_dir, int stages, std::vector<std::string> more = {}) {
    std::vector<std::string> argv = {resbm_, "train", "--job", folder_ + "/" + job + ".textproto", "--run-dir",
                                     folder_ + "/" + run_dir, "--local-stages", std::to_string(stages),
                                     "--stage-server", stage_server_, "--device", "cpu"};
    for (const std::string& set : more) argv.insert(argv.end(), {"--set", set});
    return RunProgram(argv);
  }
  std::string ModelFile(const std::string& run_dir) { return folder_ + "/" + run_dir + "/model.safetensors"; }
  std::map<std::string, std::string> Tensors(const std::string& run_dir) {
    const std::string bytes = ReadFileOrDie(ModelFile(run_dir));
    const SafetensorsFile file = *ParseSafetensors(bytes);
    std::map<std::string, std::string> tensors;
    for (const SafetensorsEntry& tensor : file.tensors) tensors[tensor.name] = std::string(tensor.data);
    return tensors;
  }
  // The run must be refused as bad input and leave nothing.
  void ExpectRefused(const std::vector<std::string>& sets, const std::vector<std::string>& says) {
    const Finished run = Train("frozen", "refused", 2, sets);
    EXPECT_EQ(run.code, 2) << run.err;
    for (const std::string& part : says) EXPECT_THAT(run.err, HasSubstr(part));
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/refused"));
  }

  static std::string* data_;
  std::string folder_, resbm_, stage_server_;
};
std::string* InitFrom::data_ = nullptr;

TEST_F(InitFrom, ATrainedModelIsWhereTheNextRunStarts) {
  ASSERT_EQ(Train("training", "first", 2).code, 0);
  const Finished run = Train("frozen", "second", 3, {"init_from.path=" + ModelFile("first")});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(Tensors("second"), Tensors("first"));
  EXPECT_THAT(run.err, HasSubstr("initial weights: "));
  EXPECT_THAT(run.err, Not(HasSubstr("from the seed")));
}

TEST_F(InitFrom, AnUncompressedModelGetsAResbmAtOneCut) {
  ASSERT_EQ(Train("training", "plain", 1, {"boundary.kind=IDENTITY"}).code, 0);
  ASSERT_EQ(Train("frozen", "seeded", 1).code, 0);
  const std::vector<std::string> sets = {"boundary.kind=IDENTITY", "cut_point[1].boundary={kind: RESBM ratio: 4}",
                                         "init_from={path: '" + ModelFile("plain") + "' strict: false}"};
  const Finished run = Train("frozen", "grafted", 2, sets);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("from the seed (boundaries.group0_1."));
  const auto plain = Tensors("plain"), seeded = Tensors("seeded"), grafted = Tensors("grafted");
  ASSERT_GT(grafted.size(), plain.size());
  for (const auto& [name, bytes] : grafted) {
    const bool added = name.rfind("boundaries.", 0) == 0;
    EXPECT_EQ(bytes, (added ? seeded : plain).at(name)) << name;
  }
  // And back: the boundary's tensors are left out.
  const Finished back = Train("frozen", "back", 1,
                              {"boundary.kind=IDENTITY", "init_from={path: '" + ModelFile("grafted") + "' strict: false}"});
  ASSERT_EQ(back.code, 0) << back.err;
  EXPECT_EQ(Tensors("back"), plain);
}

TEST_F(InitFrom, TheFirstLawHoldsFromAPartOfTheWeightsAndWithMuon) {
  ASSERT_EQ(Train("training", "plain", 2, {"boundary.kind=IDENTITY"}).code, 0);
  const std::string from = "init_from={path: '" + ModelFile("plain") + "' strict: false}";
  ASSERT_EQ(Train("training", "run1", 1, {from}).code, 0);
  for (const int stages : {2, 3, 4}) {
    const std::string dir = "run" + std::to_string(stages);
    ASSERT_EQ(Train("training", dir, stages, {from}).code, 0);
    EXPECT_EQ(Tensors(dir), Tensors("run1")) << stages << " stages";
  }
  ASSERT_EQ(Train("training", "scratch", 2).code, 0);
  EXPECT_NE(Tensors("scratch"), Tensors("run1"));
}

TEST_F(InitFrom, AFileThatDoesNotFitIsOneClearLineAndLeavesNothing) {
  ASSERT_EQ(Train("frozen", "run", 1).code, 0);
  const std::string file = ModelFile("run");
  ExpectRefused({"init_from.path=/nowhere.safetensors"}, {"/nowhere.safetensors"});
  WriteFileOrDie(folder_ + "/text", "no weights in here");
  ExpectRefused({"init_from.path=" + folder_ + "/text"}, {folder_ + "/text"});
  // Another shape, strict or not. Stages are loaded together: which of them says so first is open.
  for (const std::string strict : {"true", "false"}) {
    ExpectRefused({"boundary.ratio=2", "init_from={path: '" + file + "' strict: " + strict + "}"},
                  {"weights \"boundaries.group0_", "expected F32 [4", "got F32 [2"});
  }
  // A tensor of no layer, a parameter that is not there, and a name that no layer uses.
  ExpectRefused({"boundary.kind=IDENTITY", "init_from.path=" + file}, {"\"boundaries.group0_0."});
  const std::string bytes = ReadFileOrDie(file);
  SafetensorsFile tensors = *ParseSafetensors(bytes);
  tensors.tensors[0].name = "stem.conv.other";
  WriteFileOrDie(folder_ + "/renamed", *SerializeSafetensors(tensors));
  ExpectRefused({"init_from.path=" + folder_ + "/renamed"}, {"the weights have no \"stem.conv.weight\""});
  tensors.tensors[0].name = "stem.conv.weight";
  static const char kZero[4] = {};
  tensors.tensors.push_back({"stem.conv.extra", "F32", {1}, std::string_view(kZero, 4)});
  WriteFileOrDie(folder_ + "/more", *SerializeSafetensors(tensors));
  ExpectRefused({"init_from.path=" + folder_ + "/more"}, {"\"stem.conv.extra\"", "strict"});
}

}  // namespace
}  // namespace resbm
