#include "coordinator/report/trace_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/support/temp_files.h"

namespace resbm::coordinator {
namespace {

using nlohmann::json;
using resbm::testing::ReadFile;
using resbm::testing::TempDirectory;

class TraceFileTest : public ::testing::Test {
 protected:
  json Read() const { return json::parse(ReadFile(path_)); }

  const TempDirectory folder_;
  const std::string path_ = folder_ / "trace.json";
};

TEST_F(TraceFileTest, IsACompleteObjectFromItsFirstEventOn) {
  const auto file = TraceFile::Create(path_, "{\"a\":1}");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Read(), json::parse(R"({"traceEvents":[{"a":1}],"displayTimeUnit":"ms","otherData":{}})"));
}

TEST_F(TraceFileTest, IsCompleteAfterEveryPieceAlsoWhenWhatItSaysAboutItselfGetsShorter) {
  auto file = TraceFile::Create(path_, "{\"a\":1}");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Add(",\n{\"b\":2},\n{\"c\":3}", R"({"clock_error_us":[12345.678,90123.456]})").ok());
  EXPECT_EQ(Read()["traceEvents"].size(), 3u);
  EXPECT_EQ(Read()["otherData"]["clock_error_us"].size(), 2u);
  ASSERT_TRUE((*file)->Add("", "{}").ok());
  EXPECT_EQ(Read()["otherData"], json::object());
  ASSERT_TRUE((*file)->Add(",\n{\"d\":4}", R"({"steps":1})").ok());
  EXPECT_EQ(Read()["traceEvents"].back(), json::parse(R"({"d":4})"));
  EXPECT_EQ(Read()["otherData"]["steps"], 1);
}

TEST_F(TraceFileTest, AfterAnErrorItIsAsItWas) {
  auto file = TraceFile::Create(path_, "{\"a\":1}");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Add(",\n{\"b\":2}", R"({"steps":1})").ok());
  const json before = Read();
  // As a full disk: the file may grow by 100 bytes only, so that a part of the next piece is written.
  struct stat now = {};
  ASSERT_EQ(stat(path_.c_str(), &now), 0);
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit old = {}, limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  limit = old;
  limit.rlim_cur = static_cast<rlim_t>(now.st_size) + 100;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = (*file)->Add(",\n{\"c\":\"" + std::string(1000, 'x') + "\"}", R"({"steps":2})");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(Read(), before);
  ASSERT_TRUE((*file)->Add(",\n{\"d\":4}", R"({"steps":3})").ok());
  EXPECT_EQ(Read()["traceEvents"].size(), 3u);
}

TEST_F(TraceFileTest, AFolderThatIsNotThereIsNamed) {
  const auto file = TraceFile::Create("/nowhere/trace.json", "{}");
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("/nowhere/trace.json"), std::string::npos);
}

}  // namespace
}  // namespace resbm::coordinator
