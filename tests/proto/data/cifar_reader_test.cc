#include "proto/data/cifar_reader.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_files.h"

namespace resbm::data {
namespace {

using resbm::testing::Gzip;
using resbm::testing::TempDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A record whose pixels are all `pixel`.
std::string Record(const std::string& labels, char pixel) { return labels + std::string(kCifarImageBytes, pixel); }

TEST(CifarReader, ReadsOneFileAfterTheOther) {
  TempDirectory files;
  const std::string first = files.Write("1", Record("\x03", 'a') + Record("\x09", 'b'));
  const std::string second = files.Write("2", Record("\x01", 'c'));
  CifarImages images;
  ASSERT_TRUE(ReadCifar({first, second}, 1, 0, &images).ok());
  EXPECT_THAT(images.labels, ElementsAre(3, 9, 1));
  ASSERT_EQ(images.pixels.size(), 3u * 3072);
  EXPECT_EQ(images.pixels[3071], 'a');
  EXPECT_EQ(images.pixels[3072], 'b');
  EXPECT_EQ(images.pixels[3 * 3072 - 1], 'c');
}

TEST(CifarReader, OfTwoLabelsTheFineOneCounts) {
  TempDirectory files;
  CifarImages images;
  ASSERT_TRUE(ReadCifar({files.Write("train.bin", Record("\x02\x55", 'x'))}, 2, 0, &images).ok());
  EXPECT_THAT(images.labels, ElementsAre(0x55));
  EXPECT_EQ(images.pixels[0], 'x');
}

TEST(CifarReader, ALimitStopsWithinAndBetweenFiles) {
  TempDirectory files;
  const std::string first = files.Write("1", Record("\x03", 'a') + Record("\x09", 'b'));
  const std::string second = files.Write("2", Record("\x01", 'c') + Record("\x02", 'd'));
  for (int limit = 1; limit <= 4; ++limit) {
    CifarImages images;
    ASSERT_TRUE(ReadCifar({first, second}, 1, limit, &images).ok());
    EXPECT_EQ(images.labels.size(), static_cast<std::size_t>(limit));
    EXPECT_EQ(images.pixels.size(), limit * 3072u);
  }
}

TEST(CifarReader, AFileThatIsNotWholeRecordsSaysExpectedAndFoundBytes) {
  TempDirectory files;
  const std::string good = files.Write("good", Record("\x03", 'a'));
  CifarImages images;
  const std::string cut = files.Write("cut", Record("\x03", 'a') + "abc");
  const absl::Status status = ReadCifar({good, cut}, 1, 1, &images);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr(cut));
  EXPECT_THAT(status.message(), HasSubstr("multiple of 3073 bytes expected (say 6146), 3076 found"));
  EXPECT_EQ(ReadCifar({files.Write("empty", "")}, 1, 0, &images).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadCifar({files / "absent"}, 1, 0, &images).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadCifar({files.Write("gz", Gzip(Record("\x03", 'a')))}, 1, 0, &images).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace resbm::data
