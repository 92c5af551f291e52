#include "proto/data/idx_reader.h"

#include <sys/stat.h>

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_files.h"

namespace resbm::data {
namespace {

using resbm::testing::BigEndian;
using resbm::testing::Gzip;
using resbm::testing::TempDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ImagesHeader(std::uint32_t count, std::uint32_t rows, std::uint32_t columns) {
  return BigEndian(2051) + BigEndian(count) + BigEndian(rows) + BigEndian(columns);
}

std::string LabelsFile(const std::string& labels) { return BigEndian(2049) + BigEndian(labels.size()) + labels; }

// 3 images of 2x1.
const std::string kImages = ImagesHeader(3, 2, 1) + "\x01\x02\x03\x04\x05\xff";

class IdxReaderTest : public ::testing::Test {
 protected:
  void ExpectError(const std::string& bytes, absl::StatusCode code, const std::string& message) {
    const std::string path = files_.Write("bad", bytes);
    const auto images = ReadIdxImages(path, 0);
    EXPECT_EQ(images.status().code(), code) << images.status();
    EXPECT_THAT(images.status().message(), HasSubstr(path));
    EXPECT_THAT(images.status().message(), HasSubstr(message));
  }

  TempDirectory files_;
};

TEST_F(IdxReaderTest, ReadsPlainAndGzipAlike) {
  for (const std::string& bytes : {kImages, Gzip(kImages)}) {
    const auto images = ReadIdxImages(files_.Write("images", bytes), 0);
    ASSERT_TRUE(images.ok()) << images.status();
    EXPECT_EQ(images->count, 3);
    EXPECT_EQ(images->rows, 2);
    EXPECT_EQ(images->columns, 1);
    EXPECT_THAT(images->pixels, ElementsAre(1, 2, 3, 4, 5, 255));
  }
  for (const std::string& bytes : {LabelsFile("\x03\x01"), Gzip(LabelsFile("\x03\x01"))}) {
    const auto labels = ReadIdxLabels(files_.Write("labels", bytes), 0);
    ASSERT_TRUE(labels.ok()) << labels.status();
    EXPECT_THAT(*labels, ElementsAre(3, 1));
  }
}

TEST_F(IdxReaderTest, ALimitKeepsTheFirst) {
  for (const std::string& bytes : {kImages, Gzip(kImages)}) {
    const std::string path = files_.Write("images", bytes);
    const auto two = ReadIdxImages(path, 2);
    ASSERT_TRUE(two.ok()) << two.status();
    EXPECT_EQ(two->count, 2);
    EXPECT_THAT(two->pixels, ElementsAre(1, 2, 3, 4));
    const auto many = ReadIdxImages(path, 9);
    ASSERT_TRUE(many.ok()) << many.status();
    EXPECT_EQ(many->count, 3);
  }
  const auto labels = ReadIdxLabels(files_.Write("labels", LabelsFile("\x03\x01\x02")), 1);
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_THAT(*labels, ElementsAre(3));
}

TEST_F(IdxReaderTest, ATruncatedFileSaysExpectedAndFoundBytes) {
  ExpectError(kImages.substr(0, 20), absl::StatusCode::kDataLoss, "22 bytes expected (3 items), 20 found");
  ExpectError(kImages.substr(0, 7), absl::StatusCode::kDataLoss, "16 bytes expected, 7 found");
  ExpectError("", absl::StatusCode::kDataLoss, "16 bytes expected, 0 found");
  ExpectError(Gzip(kImages.substr(0, 20)), absl::StatusCode::kDataLoss, "22 bytes expected, 20 found (unpacked)");
}

TEST_F(IdxReaderTest, ATruncatedFileIsFoundBeyondTheLimitToo) {
  for (const std::string& bytes : {kImages.substr(0, 20), Gzip(kImages.substr(0, 20))}) {
    EXPECT_EQ(ReadIdxImages(files_.Write("bad", bytes), 1).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST_F(IdxReaderTest, AFileLongerThanItsHeaderSaysIsRefused) {
  ExpectError(kImages + "x", absl::StatusCode::kDataLoss, "22 bytes expected (3 items), 23 found");
  ExpectError(Gzip(kImages + "x"), absl::StatusCode::kDataLoss, "22 bytes expected, more found");
}

TEST_F(IdxReaderTest, EveryTruncationAndEveryFlippedBitOfAGzipFileIsAnErrorOrTheSameImages) {
  std::mt19937 random(3);
  std::string pixels(40 * 6, '\0');
  for (char& pixel : pixels) pixel = static_cast<char>(random() % 50);
  const std::string bytes = Gzip(ImagesHeader(40, 2, 3) + pixels);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto images = ReadIdxImages(files_.Write("bad", bytes.substr(0, size)), 0);
    EXPECT_FALSE(images.ok()) << size;
  }
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto images = ReadIdxImages(files_.Write("bad", flipped), 0);
    // Bits of time and system in the gzip header mean nothing.
    if (images.ok()) {
      EXPECT_EQ(std::string(images->pixels.begin(), images->pixels.end()), pixels) << bit;
    }
  }
}

TEST_F(IdxReaderTest, RandomBytesAreAnErrorNeverACrash) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    std::string bytes(random() % 60, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (trial % 3 == 0) bytes = BigEndian(2051) + bytes;
    if (trial % 3 == 1) bytes = Gzip(BigEndian(2051) + bytes);
    EXPECT_FALSE(ReadIdxImages(files_.Write("bad", bytes), 0).ok());
  }
}

TEST_F(IdxReaderTest, AnotherMagicNamesBoth) {
  ExpectError(LabelsFile("12345678"), absl::StatusCode::kInvalidArgument, "begins with 2049");
  ExpectError("PK\x03\x04 0123456789abcdef", absl::StatusCode::kInvalidArgument, "2051");
  const auto labels = ReadIdxLabels(files_.Write("labels", kImages), 0);
  EXPECT_EQ(labels.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(IdxReaderTest, SizesThatNoImageHasAreRefused) {
  ExpectError(ImagesHeader(0, 28, 28), absl::StatusCode::kInvalidArgument, "holds nothing");
  ExpectError(ImagesHeader(1, 0, 28), absl::StatusCode::kInvalidArgument, "images of 0x28");
  ExpectError(ImagesHeader(1, 28, 4097), absl::StatusCode::kInvalidArgument, "images of 28x4097");
}

TEST_F(IdxReaderTest, AHeaderThatAnnouncesMoreThanTheFileCanHoldIsRefusedByTheHeader) {
  // "N bytes expected (M items)" is the check of the header; the one while reading names no items.
  const std::string expected = "3136000016 bytes expected (4000000 items)";
  ExpectError(ImagesHeader(4'000'000, 28, 28), absl::StatusCode::kDataLoss, expected);
  ExpectError(Gzip(ImagesHeader(4'000'000, 28, 28)), absl::StatusCode::kDataLoss, expected);
  ExpectError(ImagesHeader(0xffffffff, 4096, 4096), absl::StatusCode::kInvalidArgument, "at most 4294967296 are read");
}

TEST_F(IdxReaderTest, AGzipBombIsReadNoFurtherThanItsHeaderSays) {
  // 64 MiB of zeros in 64 KiB, announced as one image of 28x28.
  const auto images = ReadIdxImages(
      files_.Write("bomb", Gzip(ImagesHeader(1, 28, 28) + std::string(std::size_t{64} << 20, '\0'))), 0);
  EXPECT_EQ(images.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(images.status().message(), HasSubstr("800 bytes expected, more found"));
}

TEST_F(IdxReaderTest, WhatIsNoFileIsRefused) {
  EXPECT_EQ(ReadIdxImages(files_ / "absent", 0).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadIdxImages(files_.path(), 0).status().code(), absl::StatusCode::kInvalidArgument);
  const std::string pipe = files_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadIdxImages(pipe, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace resbm::data
