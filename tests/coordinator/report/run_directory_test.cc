#include "coordinator/report/run_directory.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_files.h"

namespace resbm::coordinator {
namespace {

using resbm::testing::ReadFile;
using resbm::testing::TempDirectory;
using ::testing::HasSubstr;

std::unique_ptr<RunDirectory> Create(const RunDirectory::Options& options) {
  auto directory = RunDirectory::Create(options);
  EXPECT_TRUE(directory.ok()) << directory.status();
  return directory.ok() ? std::move(*directory) : nullptr;
}

RunDirectory::Options At(const std::string& path) { return {path, "", ""}; }

TEST(RunDirectory, NumbersRunsOfAName) {
  TempDirectory folder;
  const RunDirectory::Options options{"", folder / "runs", "job"};
  const auto first = Create(options);
  const auto second = Create(options);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(first->path(), folder / "runs/job-1");
  EXPECT_EQ(second->path(), folder / "runs/job-2");
  EXPECT_EQ(first->File("x"), folder / "runs/job-1/x");
  const auto other = Create({"", folder / "runs", "else"});
  EXPECT_EQ(other->path(), folder / "runs/else-1");
}

TEST(RunDirectory, MakesTheFoldersAboveAndTakesAnEmptyOne) {
  TempDirectory folder;
  EXPECT_NE(Create(At(folder / "a/b/c/")), nullptr);
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  std::filesystem::create_directory(folder / "empty");
  EXPECT_NE(Create(At(folder / "empty")), nullptr);
}

TEST(RunDirectory, OneThatHoldsSomethingIsRefusedAndLeftAsItIs) {
  TempDirectory folder;
  folder.Write("run/metrics.jsonl", "{}\n");
  const auto directory = RunDirectory::Create(At(folder / "run"));
  EXPECT_EQ(directory.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(directory.status().message(), HasSubstr(folder / "run"));
  EXPECT_THAT(directory.status().message(), HasSubstr("metrics.jsonl"));
  EXPECT_THAT(directory.status().message(), HasSubstr("another --run-dir"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run/lock"));
  EXPECT_EQ(ReadFile(folder / "run/metrics.jsonl"), "{}\n");
}

TEST(RunDirectory, APathThatIsAFileIsRefused) {
  TempDirectory folder;
  folder.Write("file", "x");
  EXPECT_FALSE(RunDirectory::Create(At(folder / "file")).ok());
  EXPECT_FALSE(RunDirectory::Create(At(folder / "file/below")).ok());
  EXPECT_EQ(RunDirectory::Open(folder / "file").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(RunDirectory::Open(folder / "absent").status().code(), absl::StatusCode::kNotFound);
}

TEST(RunDirectory, OnlyOneAtATimeUsesIt) {
  TempDirectory folder;
  auto directory = Create(At(folder / "run"));
  for (const auto& second : {RunDirectory::Create(At(folder / "run")), RunDirectory::Open(folder / "run")}) {
    EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(second.status().message(), HasSubstr("in use by process " + std::to_string(getpid())));
  }
  directory.reset();
  EXPECT_TRUE(RunDirectory::Open(folder / "run").ok());
}

TEST(RunDirectory, AnotherProgramThatWeStartDoesNotHoldTheLock) {
  TempDirectory folder;
  auto directory = Create(At(folder / "run"));
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    dup2(ready[1], STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", "echo; exec sleep 60", nullptr);
    _exit(127);
  }
  char byte;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);  // it runs
  directory.reset();
  EXPECT_TRUE(RunDirectory::Open(folder / "run").ok());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST(RunDirectory, EachLifeHasAHigherEpoch) {
  TempDirectory folder;
  {
    const auto directory = Create(At(folder / "run"));
    EXPECT_EQ(*directory->NextEpoch(), 1u);
    EXPECT_EQ(*directory->NextEpoch(), 2u);
  }
  const auto again = RunDirectory::Open(folder / "run");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*(*again)->NextEpoch(), 3u);
  EXPECT_EQ(ReadFile(folder / "run/epoch"), "3\n");
}

TEST(RunDirectory, AnEpochFileWithoutANumberIsDataLoss) {
  TempDirectory folder;
  const auto directory = Create(At(folder / "run"));
  for (const char* text : {"", "x", "-1", "18446744073709551615", "1 2", "99999999999999999999"}) {
    folder.Write("run/epoch", text);
    const auto epoch = directory->NextEpoch();
    EXPECT_EQ(epoch.status().code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_EQ(ReadFile(folder / "run/epoch"), text);
  }
}

TEST(RunDirectory, AbandonTakesBackWhatWasMade) {
  TempDirectory folder;
  auto directory = Create(At(folder / "run"));
  ASSERT_TRUE(directory->Write(kJobFile, "job").ok());
  ASSERT_TRUE(directory->NextEpoch().ok());
  folder.Write("run/metrics.jsonl", "");
  directory->Abandon();
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST(RunDirectory, AbandonLeavesWhatOthersMade) {
  TempDirectory folder;
  auto directory = Create(At(folder / "run"));
  ASSERT_TRUE(directory->Write(kJobFile, "job").ok());
  folder.Write("run/notes", "mine");
  folder.Write("run/metrics.jsonl", "{}\n");
  directory->Abandon();
  EXPECT_FALSE(std::filesystem::exists(folder / "run/job.textproto"));
  EXPECT_EQ(ReadFile(folder / "run/notes"), "mine");
  EXPECT_EQ(ReadFile(folder / "run/metrics.jsonl"), "{}\n");

  std::filesystem::create_directory(folder / "empty");
  Create(At(folder / "empty"))->Abandon();
  EXPECT_TRUE(std::filesystem::is_directory(folder / "empty"));
}

}  // namespace
}  // namespace resbm::coordinator
