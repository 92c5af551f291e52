#include "coordinator/report/tensorboard_writer.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/temp_files.h"

namespace resbm::coordinator {
namespace {

using resbm::testing::ReadFile;
using resbm::testing::TempDirectory;

std::uint32_t NumberAt(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}
// What masking did, undone.
std::uint32_t Unmask(std::uint32_t masked) {
  const std::uint32_t turned = masked - 0xa282ead8u;
  return (turned >> 17) | (turned << 15);
}

TEST(TensorboardRecord, HasTheLengthTheBytesAndTheMaskedChecksumOfEach) {
  const std::string record = TensorboardRecord("123456789");
  ASSERT_EQ(record.size(), 8u + 4 + 9 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\x09\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 9), "123456789");
  EXPECT_EQ(Unmask(NumberAt(record, 21)), 0xe3069283u) << "CRC-32C's check value";
}

TEST(TensorboardRecord, OfZerosHasTheChecksumOfTheStandard) {
  // RFC 3720, B.4: 32 bytes of zeros.
  const std::string record = TensorboardRecord(std::string(32, '\0'));
  EXPECT_EQ(Unmask(NumberAt(record, 12 + 32)), 0x8a9136aau);
}

TEST(TensorboardWriter, AfterAnErrorTheFileEndsWithTheRecordBefore) {
  const TempDirectory folder;
  const auto writer = TensorboardWriter::Create(folder.path(), absl::FromUnixSeconds(5));
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->AddScalars(1, absl::FromUnixSeconds(6), {{"loss", 1}}).ok());
  const std::string before = ReadFile((*writer)->path());
  // As a full disk, in the middle of a record.
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit old = {}, limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  limit = old;
  limit.rlim_cur = before.size() + 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = (*writer)->AddScalars(2, absl::FromUnixSeconds(7), {{"loss", 2}});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(ReadFile((*writer)->path()), before);
  EXPECT_TRUE((*writer)->AddScalars(3, absl::FromUnixSeconds(8), {{"loss", 3}}).ok());
  EXPECT_GT(ReadFile((*writer)->path()).size(), before.size());
}

TEST(TensorboardWriter, AFolderThatIsNotThereIsNamed) {
  const auto writer = TensorboardWriter::Create("/nowhere", absl::FromUnixSeconds(5));
  ASSERT_FALSE(writer.ok());
  EXPECT_NE(writer.status().message().find("/nowhere/events.out.tfevents.5."), std::string::npos);
}

}  // namespace
}  // namespace resbm::coordinator
