#include "proto/data/load_dataset.h"

#include <cmath>
#include <memory>
#include <string>

#include "proto/data/image_dataset.h"
#include "proto/data/normalization.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_files.h"

namespace resbm::data {
namespace {

using resbm::testing::BigEndian;
using resbm::testing::Gzip;
using resbm::testing::TempDirectory;
using ::testing::HasSubstr;

std::string Images(std::uint32_t count, const std::string& pixels) {
  return BigEndian(2051) + BigEndian(count) + BigEndian(1) + BigEndian(pixels.size() / count) + pixels;
}
std::string Labels(const std::string& labels) { return BigEndian(2049) + BigEndian(labels.size()) + labels; }

absl::StatusOr<std::shared_ptr<const Dataset>> Load(const v1::Data& data, Split split, std::int64_t context = 0) {
  return LoadDataset(data, split, context);
}

// Of image data.
const ImageDataset& ImagesOf(const absl::StatusOr<std::shared_ptr<const Dataset>>& loaded) {
  return dynamic_cast<const ImageDataset&>(**loaded);
}

std::string Bytes(const Dataset& dataset, std::int64_t index, std::size_t count) {
  return std::string(reinterpret_cast<const char*>(dataset.input(index)), count);
}

v1::Data Mnist(const std::string& directory) {
  v1::Data data;
  data.mutable_mnist()->set_directory(directory);
  return data;
}

TEST(LoadDataset, ReadsTheIdxFilesOfEachSplit) {
  TempDirectory files;
  files.Write("train-images-idx3-ubyte", Images(2, "abcdef"));
  files.Write("train-labels-idx1-ubyte.gz", Gzip(Labels("\x07\x09")));
  files.Write("t10k-images-idx3-ubyte.gz", Gzip(Images(1, "xyz")));
  files.Write("t10k-labels-idx1-ubyte", Labels("\x04"));
  v1::Data data = Mnist(files.path());
  const auto train = Load(data, Split::kTrain);
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ((*train)->size(), 2);
  EXPECT_EQ(ImagesOf(train).classes(), 10);
  EXPECT_EQ(*(*train)->image_size(), (ImageSize{1, 1, 3}));
  EXPECT_EQ(ImagesOf(train).label(1), 9);
  EXPECT_EQ((*train)->input(1)[2], 'f');
  const auto test = Load(data, Split::kTest);
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ((*test)->size(), 1);
  EXPECT_EQ(ImagesOf(test).label(0), 4);
  data.set_limit_train(1);
  EXPECT_EQ((*Load(data, Split::kTrain))->size(), 1);
  EXPECT_EQ((*Load(data, Split::kTest))->size(), 1);
}

TEST(LoadDataset, ReadsCifarAlsoFromTheFolderThatItsArchiveUnpacksTo) {
  TempDirectory files;
  for (int i = 1; i <= 5; ++i) {
    files.Write("cifar-10-batches-bin/data_batch_" + std::to_string(i) + ".bin",
                std::string(1, static_cast<char>(i)) + std::string(3072, 'a'));
  }
  files.Write("cifar-10-batches-bin/test_batch.bin", "\x08" + std::string(3072, 'b'));
  files.Write("train.bin", "\x01\x63" + std::string(3072, 'c'));
  files.Write("test.bin", "\x01\x64" + std::string(3072, 'd'));
  v1::Data data;
  data.mutable_cifar10()->set_directory(files.path());
  const auto train = Load(data, Split::kTrain);
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ((*train)->size(), 5);
  EXPECT_EQ(ImagesOf(train).label(4), 5);
  EXPECT_EQ(*(*train)->image_size(), (ImageSize{3, 32, 32}));
  const auto test = Load(data, Split::kTest);
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ(ImagesOf(test).label(0), 8);
  data.mutable_cifar100()->set_directory(files.path());
  const auto fine = Load(data, Split::kTrain);
  ASSERT_TRUE(fine.ok()) << fine.status();
  EXPECT_EQ(ImagesOf(fine).classes(), 100);
  EXPECT_EQ(ImagesOf(fine).label(0), 99);
  // Label 100 of 100 classes.
  const auto outside = Load(data, Split::kTest);
  EXPECT_EQ(outside.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(outside.status().message(), HasSubstr("label 100 of sample 0"));
}

TEST(LoadDataset, AMissingFileIsNamedWithTheWayToGetIt) {
  TempDirectory files;
  v1::Data data;
  data.mutable_fashion_mnist()->set_directory(files.path());
  const auto fashion = Load(data, Split::kTrain);
  EXPECT_EQ(fashion.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(fashion.status().message(), HasSubstr(files / "train-images-idx3-ubyte"));
  EXPECT_THAT(fashion.status().message(), HasSubstr("data.fashion_mnist.directory"));
  EXPECT_THAT(fashion.status().message(), HasSubstr("apt-get install dataset-fashion-mnist"));
  files.Write("t10k-images-idx3-ubyte", Images(1, "a"));
  const auto labels = Load(Mnist(files.path()), Split::kTest);
  EXPECT_EQ(labels.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(labels.status().message(), HasSubstr("t10k-labels-idx1-ubyte"));
  data.mutable_cifar10()->set_directory(files.path());
  const auto cifar = Load(data, Split::kTrain);
  EXPECT_EQ(cifar.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(cifar.status().message(), HasSubstr("data_batch_1.bin"));
  EXPECT_THAT(cifar.status().message(), HasSubstr("cifar-10-binary.tar.gz"));
}

TEST(LoadDataset, WhatDoesNotFitTogetherIsRefused) {
  TempDirectory files;
  files.Write("train-images-idx3-ubyte", Images(2, "ab"));
  files.Write("train-labels-idx1-ubyte", Labels("\x01"));
  const auto counts = Load(Mnist(files.path()), Split::kTrain);
  EXPECT_EQ(counts.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(counts.status().message(), HasSubstr("2 images"));
  files.Write("train-labels-idx1-ubyte", Labels("\x01\x0a"));
  const auto label = Load(Mnist(files.path()), Split::kTrain);
  EXPECT_EQ(label.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(label.status().message(), HasSubstr("label 10 of sample 1"));
}

TEST(LoadDataset, AJobThatNamesNoDataIsRefused) {
  EXPECT_EQ(Load(v1::Data(), Split::kTrain).status().code(), absl::StatusCode::kInvalidArgument);
  const auto unset = Load(Mnist(""), Split::kTrain);
  EXPECT_EQ(unset.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(unset.status().message(), HasSubstr("data.mnist.directory: not set"));
  v1::Data negative = Mnist("/");
  negative.set_limit_test(-1);
  EXPECT_THAT(Load(negative, Split::kTest).status().message(), HasSubstr("data.limit_test"));
}

// The files of Debian's dataset-fashion-mnist, which deploy/setup.sh installs.
TEST(LoadDataset, FashionMnistIsWhatItIsKnownToBe) {
  v1::Data data;
  data.mutable_fashion_mnist();
  const auto train = Load(data, Split::kTrain);
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ((*train)->size(), 60000);
  EXPECT_EQ(*(*train)->image_size(), (ImageSize{1, 28, 28}));
  double sum = 0, squares = 0;
  std::vector<int> per_class(10, 0);
  for (std::int64_t i = 0; i < (*train)->size(); ++i) {
    ++per_class[ImagesOf(train).label(i)];
    for (int p = 0; p < 784; ++p) {
      const double value = (*train)->input(i)[p] / 255.0;
      sum += value;
      squares += value * value;
    }
  }
  EXPECT_THAT(per_class, ::testing::Each(6000));
  const double mean = sum / (60000 * 784);
  const Normalization normalization = NormalizationOf(data);
  EXPECT_NEAR(mean, normalization.mean[0], 5e-5);
  EXPECT_NEAR(std::sqrt(squares / (60000 * 784) - mean * mean), normalization.standard_deviation[0], 5e-5);
  const auto test = Load(data, Split::kTest);
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ((*test)->size(), 10000);
}

v1::Data Text(const std::string& path, double test_share) {
  v1::Data data;
  data.mutable_text()->add_file(path);
  data.mutable_text()->set_test_share(test_share);
  return data;
}

TEST(LoadDataset, TextComesInWindowsAndTheEndOfEachFileIsForTheTest) {
  TempDirectory files;
  files.Write("a.txt", "abcdefgh");
  files.Write("b.txt", "ABCDEFGHIJKL");
  const v1::Data data = Text(files.path(), 0.25);
  const auto train = Load(data, Split::kTrain, 4);  // abcdefABCDEFGHI
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ((*train)->size(), 4);
  EXPECT_EQ(Bytes(**train, 1, 4), "efAB");
  EXPECT_EQ((*train)->weight(3), 2);
  const auto test = Load(data, Split::kTest, 4);  // ghJKL
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ((*test)->size(), 1);
  EXPECT_EQ(Bytes(**test, 0, 4), "ghJK");
  EXPECT_EQ((*test)->weight(0), 4);
}

TEST(LoadDataset, LimitsOfTextCountSamples) {
  TempDirectory files;
  const std::string path = files.Write("a", "abcdefghijklmnop");
  v1::Data data = Text(path, 0);
  EXPECT_EQ((*Load(data, Split::kTrain, 5))->size(), 3);
  for (const int limit : {1, 2, 3, 4}) {
    data.set_limit_train(limit);
    const auto train = Load(data, Split::kTrain, 5);
    EXPECT_EQ((*train)->size(), std::min(limit, 3));
    // The next sample's first byte is still predicted.
    EXPECT_EQ((*train)->weight((*train)->size() - 1), 5);
  }
}

TEST(LoadDataset, TextThatIsNotThereOrTooShortIsRefusedWithTheWayOut) {
  TempDirectory files;
  const auto missing = Load(Text(files / "none.txt", 0.1), Split::kTrain, 8);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("data.text.file: " + (files / "none.txt")));
  EXPECT_THAT(missing.status().message(), HasSubstr("deploy/setup.sh"));
  const std::string path = files.Write("a.txt", "abc");
  const auto short_text = Load(Text(path, 0.5), Split::kTest, 8);
  EXPECT_EQ(short_text.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(short_text.status().message(), HasSubstr("the test part: 1 byte of text; at least 2 are needed"));
}

TEST(LoadDataset, NormalizationHasAFigureAChannel) {
  v1::Data data = Mnist("/");
  EXPECT_EQ(NormalizationOf(data).mean.size(), 1u);
  data.mutable_cifar10();
  EXPECT_EQ(NormalizationOf(data).mean.size(), 3u);
  EXPECT_EQ(NormalizationOf(data).standard_deviation.size(), 3u);
  EXPECT_TRUE(NormalizationOf(v1::Data()).mean.empty());
}

}  // namespace
}  // namespace resbm::data
