#include "stage_server/data/local_data.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage_server/data/local_data_computer.h"
#include "tests/stage_server/data/small_copy.h"
#include "tests/support/small_images.h"
#include "tests/support/subprocess.h"

namespace resbm::stage_server {
namespace {

using resbm::testing::NewFolder;
using resbm::testing::WriteFileOrDie;
using resbm::testing::WriteSmallMnist;
using stage_server::testing::SmallCopy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LocalData, ACopyElsewhereGivesTheCoordinatorsTensors) {
  const std::string original = WriteSmallMnist(20, 10), copy = WriteSmallMnist(20, 10);
  const v1::LocalData spec = SmallCopy(original);
  LocalData here(copy), there(original);
  ASSERT_EQ(here.source(), nullptr);
  ASSERT_TRUE(here.Load(spec).ok());
  ASSERT_TRUE(there.Load(spec).ok());
  const data::StepBatch batch = here.source()->Plan(2);
  EXPECT_EQ(here.source()->Inputs(batch, 1).payload.view(), there.source()->Inputs(batch, 1).payload.view());
  EXPECT_EQ(here.source()->EvaluationTargets(0).payload.view(), there.source()->EvaluationTargets(0).payload.view());
  here.Clear();
  EXPECT_EQ(here.source(), nullptr);
}

TEST(LocalData, ADifferentCopyIsRefusedWithBothHashes) {
  const std::string original = WriteSmallMnist(20, 10), other = WriteSmallMnist(20, 11);
  LocalData local(other);
  const absl::Status status = local.Load(SmallCopy(original));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("the test data here is not the coordinator's: 11 samples with hash "));
  EXPECT_EQ(local.source(), nullptr);
}

TEST(LocalData, WhatIsNotUsedIsNotRead) {
  const std::string original = WriteSmallMnist(20, 10), copy = WriteSmallMnist(20, 10);
  v1::LocalData spec = SmallCopy(original);
  spec.clear_train_hash();
  std::filesystem::remove(copy + "/train-images-idx3-ubyte");
  LocalData local(copy);
  ASSERT_TRUE(local.Load(spec).ok());
  EXPECT_FALSE(local.source()->has_training_data());
}

TEST(LocalData, ServersWithoutAFolderAndBadSpecsSaySo) {
  const std::string folder = WriteSmallMnist(20, 10);
  EXPECT_THAT(LocalData("").Load(SmallCopy(folder)).message(), HasSubstr("start it with --data FOLDER"));
  v1::LocalData bad = SmallCopy(folder);
  bad.set_samples(0);
  EXPECT_EQ(LocalData(folder).Load(bad).code(), absl::StatusCode::kInvalidArgument);
  v1::LocalData none;
  none.set_samples(1);
  none.set_micro_batches(1);
  none.set_evaluation_micro_batch(1);
  none.set_train_hash(1);
  EXPECT_EQ(LocalData(folder).Load(none).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LocalData(NewFolder("empty")).Load(SmallCopy(folder)).code(), absl::StatusCode::kNotFound);
}

TEST(LocalData, NoNameLeadsOutOfTheFolder) {
  v1::Data text;
  for (const char* file : {"~/books/hamlet.txt", "/etc/plays/", "lear.txt", "../..", "a/..", "/"}) {
    text.mutable_text()->add_file(file);
  }
  text.mutable_text()->add_file(std::string("..\0x", 4));
  EXPECT_THAT(Within("/data", text).text().file(),
              ElementsAre("/data/hamlet.txt", "/data/plays", "/data/lear.txt", "/data/", "/data/", "/data/", "/data/"));
  v1::Data images;
  images.mutable_cifar10()->set_directory("/etc");
  EXPECT_EQ(Within("/data", images).cifar10().directory(), "/data");
}

TEST(LocalData, WhatAPeerMakesUpIsRefusedBeforeItTakesMemory) {
  const std::string folder = NewFolder("text");
  WriteFileOrDie(folder + "/play.txt", "to be or not to be");
  v1::LocalData good;
  good.mutable_data()->mutable_text()->add_file("play.txt");
  good.set_context(4);
  good.set_samples(2);
  good.set_micro_batches(1);
  good.set_evaluation_micro_batch(1);
  good.set_train_hash(1);
  // As far as the hash.
  EXPECT_EQ(LocalData(folder).Load(good).code(), absl::StatusCode::kFailedPrecondition);
  v1::LocalData twice = good, share = good, context = good;
  twice.mutable_data()->mutable_text()->add_file("elsewhere/play.txt");
  EXPECT_THAT(LocalData(folder).Load(twice).message(), HasSubstr("two files of the same name"));
  share.mutable_data()->mutable_text()->set_test_share(1.5);
  EXPECT_EQ(LocalData(folder).Load(share).code(), absl::StatusCode::kInvalidArgument);
  context.set_context(std::int64_t{1} << 62);
  EXPECT_EQ(LocalData(folder).Load(context).code(), absl::StatusCode::kInvalidArgument);
}

// Writes down what it was asked.
class Recorder : public Computer {
 public:
  explicit Recorder(std::vector<std::size_t>* kinds) : kinds_(kinds) {}
  WorkResult Run(const Work& work) override {
    kinds_->push_back(work.index());
    return {};
  }

 private:
  std::vector<std::size_t>* const kinds_;
};

TEST(LocalDataComputer, LoadsTheDataWithTheStageAndForgetsBothTogether) {
  const std::string folder = WriteSmallMnist(20, 10);
  LocalData local(folder);
  std::vector<std::size_t> kinds;
  LocalDataComputer computer(std::make_unique<Recorder>(&kinds), &local);
  Load load;
  *load.spec.mutable_local_data() = SmallCopy(folder);
  EXPECT_TRUE(computer.Run(load).status.ok());
  EXPECT_NE(local.source(), nullptr);
  EXPECT_TRUE(computer.Run(Finish()).status.ok());
  EXPECT_NE(local.source(), nullptr);
  // Another copy than the job's: the stage is gone with it.
  load.spec.mutable_local_data()->set_train_hash(1);
  const WorkResult failed = computer.Run(load);
  EXPECT_THAT(failed.status.message(), HasSubstr("local data: the training data here"));
  EXPECT_EQ(local.source(), nullptr);
  load.spec.clear_local_data();
  EXPECT_TRUE(computer.Run(load).status.ok());
  const std::size_t loads = Work(Load()).index(), unloads = Work(Unload()).index();
  EXPECT_THAT(kinds, ElementsAre(loads, Work(Finish()).index(), unloads, loads));
}

}  // namespace
}  // namespace resbm::stage_server
