#include "coordinator/report/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_files.h"

namespace resbm::coordinator {
namespace {

using resbm::testing::ReadFile;
using resbm::testing::TempDirectory;
using ::testing::HasSubstr;

int FilesIn(const std::string& folder) {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(AtomicFile, WritesAndReplaces) {
  TempDirectory folder;
  const std::string path = folder / "file";
  ASSERT_TRUE(WriteFileAtomically(path, "one").ok());
  EXPECT_EQ(ReadFile(path), "one");
  const std::string large(3 << 20, 'x');
  ASSERT_TRUE(WriteFileAtomically(path, large).ok());
  EXPECT_EQ(ReadFile(path), large);
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  EXPECT_EQ(ReadFile(path), "");
  EXPECT_EQ(FilesIn(folder.path()), 1);
}

TEST(AtomicFile, AMissingFolderIsNamed) {
  TempDirectory folder;
  const absl::Status status = WriteFileAtomically(folder / "absent/file", "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("absent/file"));
}

TEST(AtomicFile, AFailedRenameLeavesNothingBehind) {
  TempDirectory folder;
  folder.Write("taken/file", "x");  // a folder cannot be replaced by a file
  EXPECT_FALSE(WriteFileAtomically(folder / "taken", "y").ok());
  EXPECT_EQ(FilesIn(folder.path()), 1);
  EXPECT_EQ(ReadFile(folder / "taken/file"), "x");
}

TEST(AtomicFile, AFullDiskIsResourceExhaustedAndSaysWhatToDo) {
  const int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const absl::Status status = WriteAll(fd, "row", "/runs/x/metrics.jsonl");
  close(fd);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("/runs/x/metrics.jsonl"));
  EXPECT_THAT(status.message(), HasSubstr("make room"));
}

}  // namespace
}  // namespace resbm::coordinator
