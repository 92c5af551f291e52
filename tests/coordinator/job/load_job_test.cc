#include "coordinator/job/load_job.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

std::string ErrorOf(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto loaded = ParseJob(text, "job.textproto", overrides);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(loaded.status().message());
}

TEST(ParseJob, ReadsFieldsAndWhereTheyAre) {
  const auto loaded = ParseJob(
      "name: \"a\"  # a comment\n"
      "boundary {\n"
      "  ratio: 8 }\n"
      "cut_point { after: \"x\" }\n"
      "cut_point {\n"
      "  boundary { ratio: 4 }\n"
      "}\n"
      "schedule { windows: 2\n"
      "  windows: 1 }\n",
      "job.textproto", {});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->job.name(), "a");
  EXPECT_EQ(loaded->job.cut_point(1).boundary().ratio(), 4);
  const SourceMap& at = loaded->locations;
  EXPECT_EQ(at.Locate("name"), "job.textproto:1");
  EXPECT_EQ(at.Locate("boundary"), "job.textproto:2");
  EXPECT_EQ(at.Locate("boundary.ratio"), "job.textproto:3");
  EXPECT_EQ(at.Locate("cut_point[0].after"), "job.textproto:4");
  EXPECT_EQ(at.Locate("cut_point[1]"), "job.textproto:5");
  EXPECT_EQ(at.Locate("cut_point[1].boundary.ratio"), "job.textproto:6");
  EXPECT_EQ(at.Locate("schedule.windows[1]"), "job.textproto:9");
}

TEST(ParseJob, EntriesOfAListInBracketsAreWhereTheListIs) {
  const auto loaded = ParseJob("schedule {\n windows: [3,\n 2, 1] }", "job.textproto", {});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->job.schedule().windows_size(), 3);
  EXPECT_EQ(loaded->locations.Locate("schedule.windows[2]"), "job.textproto:2");
}

TEST(ParseJob, FindsAllUnknownFieldsAtOnce) {
  EXPECT_EQ(ErrorOf("naem: \"a\"\n"
                    "boundary { ratio: 8\n"
                    "  low_dim { dpeth: 2 }\n"
                    "  compression: 4 }\n"
                    "modle {\n"
                    "  resnet { clases: 3 }\n"
                    "}\n"
                    "seed: 3\n"),
            "job.textproto:1:1: no field \"naem\"; did you mean \"name\"?\n"
            "job.textproto:3:13: boundary.low_dim: no field \"dpeth\"; did you mean \"depth\"?\n"
            "job.textproto:4:3: boundary: no field \"compression\"; "
            "known: kind, ratio, shortcut, low_dim, norm_groups, out_channels, stride, init, projection\n"
            "job.textproto:5:1: no field \"modle\"; did you mean \"model\"?");
}

TEST(ParseJob, UnknownFieldsComeWithASyntaxErrorAfterThem) {
  EXPECT_EQ(ErrorOf("sead: 1\nbatch { samples: x }\n"),
            "job.textproto:1:1: no field \"sead\"; did you mean \"seed\"?\n"
            "job.textproto:2:18: batch: Expected integer, got: x");
}

TEST(ParseJob, UnknownEnumValuesListTheKnownOnes) {
  EXPECT_EQ(ErrorOf("schedule {\n  kind: INTERLEAVED\n\n}\n"),
            "job.textproto:2:9: schedule: kind: expected one of ONE_F_ONE_B, GPIPE, got \"INTERLEAVED\"");
  EXPECT_EQ(
      ErrorOf("cut_point: [{ after: \"a\" }, { wire {\n activations: FP8\n } }]"),
      "job.textproto:2:15: cut_point.wire: activations: expected one of FP16, BF16, FP32, INT8, INT4, got \"FP8\"");
}

TEST(ParseJob, FieldsSetTwiceAreRefused) {
  EXPECT_EQ(ErrorOf("batch {\n  samples: 1\n  samples: 2\n}\n"), "job.textproto:3:3: batch: \"samples\" is set twice");
}

TEST(ParseJob, TwoKindsAtOnceAreRefused) {
  EXPECT_THAT(
      ErrorOf("optimizer { sgd {}\n adamw {} }"),
      testing::StartsWith("job.textproto:2:8: optimizer: Field \"adamw\" is specified along with field \"sgd\""));
}

TEST(ParseJob, UnclosedBracesAreRefused) {
  EXPECT_THAT(ErrorOf("batch {\n  samples: 8\n"), testing::StartsWith("job.textproto:3:1: batch: "));
}

TEST(ParseJob, AnyBytesAreSafe) {
  EXPECT_FALSE(ErrorOf(std::string("\0\xff\x80{{{", 6)).empty());
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "a{";
  EXPECT_FALSE(ErrorOf(deep).empty());
}

TEST(ParseJob, OverridesBeatTheFileInOrder) {
  const auto loaded = ParseJob("boundary {\n ratio: 8\n}", "job.textproto",
                               std::vector<std::string>{"boundary.ratio=4", "boundary.ratio=24"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->job.boundary().ratio(), 24);
  EXPECT_EQ(loaded->locations.Locate("boundary.ratio"), "--set boundary.ratio=24");
  EXPECT_EQ(loaded->locations.Locate("boundary"), "job.textproto:1");
}

TEST(ParseJob, BadOverridesAreAllSaid) {
  EXPECT_EQ(ErrorOf("", {"boundry.ratio=4", "batch.samples=x", "seed=3"}),
            "--set boundry.ratio=4: no field \"boundry\" in the job; did you mean \"boundary\"?\n"
            "--set batch.samples=x: batch.samples: expected a whole number (int32), got \"x\"");
}

TEST(LoadJob, ReadsAFile) {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/a.textproto";
  std::ofstream(path) << "seed: 7\nbatch { samples: 3 }\n";
  const auto loaded = LoadJob(path, {{"batch.samples=5"}});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->job.seed(), 7u);
  EXPECT_EQ(loaded->job.batch().samples(), 5);
  EXPECT_EQ(loaded->locations.Locate("seed"), path + ":1");
}

TEST(LoadJob, MissingFileIsNotFound) {
  const auto loaded = LoadJob("/nonexistent/job.textproto", {});
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(loaded.status().message(), "no job file \"/nonexistent/job.textproto\"; write one with: resbm init");
}

TEST(LoadJob, FolderIsRefused) {
  const std::string folder = std::getenv("TEST_TMPDIR");
  const auto loaded = LoadJob(folder, {});
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(loaded.status().message(), "\"" + folder + "\" is a folder; name the job file in it");
}

TEST(LoadJob, HugeFileIsRefused) {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/huge.textproto";
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  const auto loaded = LoadJob(path, {});
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(loaded.status().message(), "\"" + path + "\" is over 1 MiB: not a job file");
}

}  // namespace
}  // namespace resbm::coordinator
