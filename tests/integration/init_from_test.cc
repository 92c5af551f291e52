// `resbm train` from given weights, over real gRPC on loopback: what comes from the file, what from the seed, and
// what a file that does not fit is answered.
#include <filesystem>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/base/safetensors.h"
#include "tests/support/program_test.h"

namespace resbm {
namespace {

using testing::Finished;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ReadFileOrDie;
using testing::RunProgram;
using testing::Strings;
using testing::WriteFileOrDie;

// A rate that is 0 as a float, so that every weight stays as it is: what a run started from is what it saves.
constexpr char kFrozen[] = R"pb(
  batch { samples: 20 micro_batches: 2 }
  optimizer { sgd { learning_rate: 1e-60 } }
  run { steps: 1 evaluate: false }
)pb";
constexpr char kTraining[] = R"pb(
  batch { samples: 20 micro_batches: 3 }
  optimizer {
    muon {
      learning_rate: 0.02
      adamw { learning_rate: 0.002 }
    }
    clip_norm: 1
  }
  run { steps: 2 evaluate: false }
)pb";

class InitFrom : public testing::ImageProgramTest {
 protected:
  InitFrom() : ImageProgramTest(40, 10) {
    WriteJob(kFrozen, "frozen.textproto");
    WriteJob(kTraining, "training.textproto");
  }

  Finished Train(const std::string& job, const std::string& run_dir, int stages, const Strings& sets = {}) {
    return RunProgram(TrainOf(job + ".textproto", run_dir, stages, sets));
  }
  std::string ModelFile(const std::string& run_dir) { return Path(run_dir, "model.safetensors"); }
  // The run must be refused as bad input and leave nothing.
  void ExpectRefused(const Strings& sets, const Strings& says) {
    const Finished run = Train("frozen", "refused", 2, sets);
    EXPECT_EQ(run.code, 2) << run.err;
    for (const std::string& part : says) EXPECT_THAT(run.err, HasSubstr(part));
    EXPECT_FALSE(std::filesystem::exists(Path("refused")));
  }
};

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
  const Strings sets = {"boundary.kind=IDENTITY", "cut_point[1].boundary={kind: RESBM ratio: 4}",
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
  const Finished back =
      Train("frozen", "back", 1,
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
  WriteFileOrDie(Path("text"), "no weights in here");
  ExpectRefused({"init_from.path=" + Path("text")}, {Path("text")});
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
  WriteFileOrDie(Path("renamed"), *SerializeSafetensors(tensors));
  ExpectRefused({"init_from.path=" + Path("renamed")}, {"the weights have no \"stem.conv.weight\""});
  tensors.tensors[0].name = "stem.conv.weight";
  static const char kZero[4] = {};
  tensors.tensors.push_back({"stem.conv.extra", "F32", {1}, std::string_view(kZero, 4)});
  WriteFileOrDie(Path("more"), *SerializeSafetensors(tensors));
  ExpectRefused({"init_from.path=" + Path("more")}, {"\"stem.conv.extra\"", "strict"});
}

}  // namespace
}  // namespace resbm
