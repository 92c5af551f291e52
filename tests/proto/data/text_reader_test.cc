#include "proto/data/text_reader.h"

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_files.h"

namespace resbm::data {
namespace {

using resbm::testing::Gzip;
using resbm::testing::TempDirectory;
using ::testing::HasSubstr;

std::string Read(const std::vector<std::string>& paths, Split split, double test_share) {
  const auto text = ReadText(paths, split, test_share);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? std::string(text->begin(), text->end()) : "";
}

TEST(ReadText, FilesFollowOneAnotherInTheirOrderWithNothingBetween) {
  TempDirectory files;
  const std::string b = files.Write("b", "second"), a = files.Write("a", "first");
  EXPECT_EQ(Read({b, a}, Split::kTrain, 0), "secondfirst");
  EXPECT_EQ(Read({a, b, a}, Split::kTrain, 0), "firstsecondfirst");
}

TEST(ReadText, OfEachFileTheEndIsTheTest) {
  TempDirectory files;
  const std::string a = files.Write("a", "0123456789"), b = files.Write("b", "abcdefghijklmnop");
  EXPECT_EQ(Read({a, b}, Split::kTrain, 0.25),
            "01234567"
            "abcdefghijkl");
  EXPECT_EQ(Read({a, b}, Split::kTest, 0.25),
            "89"
            "mnop");
  EXPECT_EQ(Read({a}, Split::kTest, 0.09), "");
  EXPECT_EQ(Read({a}, Split::kTrain, 0.09), "0123456789");
}

TEST(ReadText, OfAFolderItsTextFilesByNamePackedOrNot) {
  TempDirectory files;
  files.Write("z.txt", "z");
  files.Write("a.txt.gz", Gzip("packed"));
  files.Write("m.txt", "m");
  files.Write("readme.md", "no");
  files.Write(".hidden.txt", "no");
  EXPECT_EQ(Read({files.path()}, Split::kTrain, 0), "packedmz");
}

TEST(ReadText, AFileMayBeLargerThanAPieceOrEmpty) {
  TempDirectory files;
  std::string large(3'000'000, ' ');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7);
  const std::string a = files.Write("a", large), b = files.Write("b", "");
  const std::string c = files.Write("c", std::string(1 << 20, 'c'));
  EXPECT_EQ(Read({a, b, c}, Split::kTrain, 0), large + std::string(1 << 20, 'c'));
}

TEST(ReadText, ATildeIsTheHomeDirectory) {
  TempDirectory files;
  files.Write("plays/a.txt", "hamlet");
  setenv("HOME", files.path().c_str(), 1);
  EXPECT_EQ(Read({"~/plays"}, Split::kTrain, 0), "hamlet");
}

TEST(ReadText, MissingFilesAndFoldersWithoutTextAreNamed) {
  TempDirectory files;
  EXPECT_EQ(ReadText({}, Split::kTrain, 0).status().code(), absl::StatusCode::kInvalidArgument);
  const auto none = ReadText({files / "none"}, Split::kTrain, 0);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(none.status().message(), HasSubstr(files / "none"));
  const auto empty = ReadText({files.path()}, Split::kTrain, 0);
  EXPECT_EQ(empty.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(empty.status().message(), HasSubstr(files.path() + ": no .txt or .txt.gz file in this folder"));
}

TEST(ReadText, AShareThatIsNoneIsRefused) {
  const TempDirectory folder;
  const std::string file = folder.Write("a", "text");
  for (const double share : {-0.1, 1.0, 1.5, 1e300, std::nan("")}) {
    for (const Split split : {Split::kTrain, Split::kTest}) {
      EXPECT_EQ(ReadText({file}, split, share).status().code(), absl::StatusCode::kInvalidArgument) << share;
    }
  }
}

TEST(ReadText, ADamagedFileIsRefused) {
  TempDirectory files;
  const std::string packed = Gzip("to be or not to be");
  const auto text = ReadText({files.Write("cut.txt.gz", packed.substr(0, packed.size() - 6))}, Split::kTrain, 0);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(text.status().message(), HasSubstr("cut.txt.gz"));
}

}  // namespace
}  // namespace resbm::data
