#include "coordinator/status/run_info.h"

#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "coordinator/report/run_directory.h"
#include "tests/support/subprocess.h"

namespace resbm::coordinator {
namespace {

using resbm::testing::NewFolder;
using resbm::testing::WriteFileOrDie;

class RunInfoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = NewFolder("run");
    WriteFileOrDie(File(kStagesFile), ToJson(StagesFile{"run-1", 100, {"host-a:50051", "host-b:50051"}}));
  }
  std::string File(const std::string& name) { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(RunInfoTest, AddressesAndTheLastWholeRowAreFound) {
  WriteFileOrDie(File(kMetricsFile),
                 "{\"step\": 1, \"loss\": 2.0, \"epoch\": 0}\n"
                 "{\"step\": 2, \"loss\": 0.5, \"epoch\": 1, \"learning_rate\": 0.1, \"step_seconds\": 1.5}\n"
                 "{\"step\": 3, \"lo");
  const auto run = ReadRunInfo(folder_ + "/");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->directory, folder_);
  EXPECT_EQ(run->stages.job_id, "run-1");
  EXPECT_EQ(run->stages.addresses, (std::vector<std::string>{"host-a:50051", "host-b:50051"}));
  ASSERT_TRUE(run->last.has_value());
  EXPECT_EQ(run->last->step, 2);
  EXPECT_EQ(run->last->epoch, 1);
  EXPECT_EQ(run->last->loss, 0.5);
  EXPECT_EQ(run->last->step_seconds, 1.5);
  EXPECT_LT(run->last->age_seconds, 600);
  EXPECT_FALSE(run->coordinator_pid.has_value());
  EXPECT_FALSE(run->ended());
}

TEST_F(RunInfoTest, ARowThatIsNotFiniteHasNoLossAndAMissingFileNoRow) {
  EXPECT_FALSE(ReadRunInfo(folder_)->last.has_value());
  WriteFileOrDie(File(kMetricsFile), "{\"step\": 1, \"loss\": null, \"skipped\": true}\n");
  const auto run = ReadRunInfo(folder_);
  EXPECT_FALSE(run->last->loss.has_value());
  EXPECT_TRUE(run->last->skipped);
  for (const char* bad : {"", "\n", "no json\n", "[]\n", "{\"step\": \"1\"}\n", "{}\n"}) {
    WriteFileOrDie(File(kMetricsFile), bad);
    EXPECT_FALSE(ReadRunInfo(folder_)->last.has_value()) << bad;
  }
}

TEST_F(RunInfoTest, TheEndOfALongFileIsEnough) {
  std::string rows;
  for (int step = 1; step <= 20000; ++step) rows += "{\"step\": " + std::to_string(step) + ", \"loss\": 1.0}\n";
  WriteFileOrDie(File(kMetricsFile), rows);
  EXPECT_EQ(ReadRunInfo(folder_)->last->step, 20000);
}

TEST_F(RunInfoTest, WhoRunsItIsSeenWithoutDisturbingIt) {
  std::filesystem::remove(File(kStagesFile));
  std::filesystem::remove(folder_);
  RunDirectory::Options options;
  options.path = folder_;
  auto directory = RunDirectory::Create(options);
  ASSERT_TRUE(directory.ok()) << directory.status();
  ASSERT_TRUE((*directory)->Write(kStagesFile, ToJson(StagesFile{"run-1", 1, {"host-a:1"}})).ok());
  ASSERT_TRUE((*directory)->Write(kSummaryFile, "{}").ok());
  EXPECT_EQ(ReadRunInfo(folder_)->coordinator_pid, getpid());
  EXPECT_FALSE(ReadRunInfo(folder_)->ended());
  directory->reset();
  EXPECT_FALSE(ReadRunInfo(folder_)->coordinator_pid.has_value());
  EXPECT_TRUE(ReadRunInfo(folder_)->ended());
}

TEST_F(RunInfoTest, WhatIsNoRunIsAnErrorThatSaysSo) {
  EXPECT_EQ(ReadRunInfo(folder_ + "/nowhere").status().code(), absl::StatusCode::kNotFound);
  for (const char* bad : {"", "[]", "{\"job_id\": 1}", "{\"job_id\": \"a\", \"total_steps\": 1, \"stages\": [1]}"}) {
    WriteFileOrDie(File(kStagesFile), bad);
    EXPECT_EQ(ReadRunInfo(folder_).status().code(), absl::StatusCode::kDataLoss) << bad;
  }
  std::filesystem::remove(File(kStagesFile));
  const absl::Status status = ReadRunInfo(folder_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("--stages"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace resbm::coordinator
