#include "proto/data/load_dataset.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/data/cifar_reader.h"
#include "proto/data/idx_reader.h"
#include "proto/data/image_dataset.h"
#include "proto/data/text_dataset.h"
#include "proto/data/text_reader.h"
#include "proto/base/status.h"

namespace resbm::data {
namespace {

constexpr char kFashionMnistDirectory[] = "/usr/share/datasets/fashion-mnist";

using DatasetOrError = absl::StatusOr<std::shared_ptr<const Dataset>>;

// Or cannot be told: then opening it gives the better message.
bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) || error;
}

// Which data set: how the job calls it and how to come by it.
struct Source {
  absl::string_view field;
  absl::string_view how_to_get;
};

// In `source.field`'s directory, or NOT_FOUND.
absl::StatusOr<std::string> FindIdx(const Source& source, const std::string& directory, absl::string_view name) {
  const std::string path = absl::StrCat(directory, "/", name);
  if (Exists(path)) return path;
  if (Exists(path + ".gz")) return path + ".gz";
  return absl::NotFoundError(absl::StrCat(source.field, ".directory: no ", path, " (or .gz): ", source.how_to_get));
}

DatasetOrError LoadIdx(const Source& source, const std::string& directory, Split split, std::int64_t limit) {
  const absl::string_view prefix = split == Split::kTrain ? "train" : "t10k";
  RESBM_ASSIGN_OR_RETURN(const std::string images_path,
                         FindIdx(source, directory, absl::StrCat(prefix, "-images-idx3-ubyte")));
  RESBM_ASSIGN_OR_RETURN(const std::string labels_path,
                         FindIdx(source, directory, absl::StrCat(prefix, "-labels-idx1-ubyte")));
  RESBM_ASSIGN_OR_RETURN(IdxImages images, ReadIdxImages(images_path, limit));
  RESBM_ASSIGN_OR_RETURN(std::vector<std::uint8_t> labels, ReadIdxLabels(labels_path, limit));
  if (static_cast<std::int64_t>(labels.size()) != images.count) {
    return absl::InvalidArgumentError(absl::StrCat(images_path, " has ", images.count, " images, ", labels_path, " ",
                                                   labels.size(), " labels; take both from the same data set"));
  }
  auto dataset =
      ImageDataset::Create({1, images.rows, images.columns}, 10, std::move(images.pixels), std::move(labels));
  if (!dataset.ok()) return Annotate(dataset.status(), labels_path);
  return dataset;
}

DatasetOrError LoadCifar(const Source& source, std::string directory, Split split, std::int64_t limit, bool fine) {
  std::vector<std::string> names;
  if (split == Split::kTest) {
    names = {fine ? "test.bin" : "test_batch.bin"};
  } else if (fine) {
    names = {"train.bin"};
  } else {
    for (int i = 1; i <= 5; ++i) names.push_back(absl::StrCat("data_batch_", i, ".bin"));
  }
  const std::string unpacked = absl::StrCat(directory, fine ? "/cifar-100-binary" : "/cifar-10-batches-bin");
  if (!Exists(absl::StrCat(directory, "/", names[0])) && Exists(unpacked)) directory = unpacked;
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    paths.push_back(absl::StrCat(directory, "/", name));
    if (!Exists(paths.back())) {
      return absl::NotFoundError(absl::StrCat(source.field, ".directory: no ", paths.back(), ": ", source.how_to_get));
    }
  }
  CifarImages images;
  RESBM_RETURN_IF_ERROR(ReadCifar(paths, fine ? 2 : 1, limit, &images));
  auto dataset = ImageDataset::Create({3, 32, 32}, fine ? 100 : 10, std::move(images.pixels), std::move(images.labels));
  if (!dataset.ok()) return Annotate(dataset.status(), directory);
  return dataset;
}

DatasetOrError LoadText(const v1::Data::Text& text, Split split, std::int64_t limit, std::int64_t context) {
  constexpr char kField[] = "data.text.file";
  const std::vector<std::string> paths(text.file().begin(), text.file().end());
  auto bytes = ReadText(paths, split, text.test_share());
  if (!bytes.ok()) {
    const absl::Status status = Annotate(bytes.status(), kField);
    if (!absl::IsNotFound(status)) return status;
    return absl::NotFoundError(absl::StrCat(status.message(),
                                            "; name files, or a folder with .txt files (deploy/"
                                            "setup.sh puts Shakespeare's plays into ~/.cache/resbm/shakespeare)"));
  }
  // One byte more than the samples have: the last one predicts it.
  const auto windows = static_cast<std::int64_t>(bytes->size()) / std::max<std::int64_t>(context, 1);
  if (limit > 0 && limit <= windows) {
    bytes->resize(std::min(bytes->size(), static_cast<std::size_t>(limit * context + 1)));
  }
  auto dataset = TextDataset::Create(*std::move(bytes), context);
  if (dataset.ok()) return dataset;
  const char* part = split == Split::kTrain ? "training" : "test";
  return Annotate(dataset.status(), absl::StrCat(kField, ": the ", part, " part"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> LoadDataset(const v1::Data& data, Split split, std::int64_t context) {
  const std::int64_t limit = split == Split::kTrain ? data.limit_train() : data.limit_test();
  if (limit < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        split == Split::kTrain ? "data.limit_train: " : "data.limit_test: ", limit, " samples; 0 means all"));
  }
  const Source fashion = {"data.fashion_mnist",
                          "run \"apt-get install dataset-fashion-mnist\", which fills "
                          "/usr/share/datasets/fashion-mnist"};
  const Source mnist = {"data.mnist", "get the four IDX files of http://yann.lecun.com/exdb/mnist into it"};
  const Source cifar10 = {
      "data.cifar10", "unpack https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz (the binary version) into it"};
  const Source cifar100 = {
      "data.cifar100", "unpack https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz (the binary version) into it"};
  auto no_directory = [](const Source& source) {
    return absl::InvalidArgumentError(absl::StrCat(source.field, ".directory: not set; ", source.how_to_get));
  };
  switch (data.kind_case()) {
    case v1::Data::kFashionMnist: {
      const std::string& directory = data.fashion_mnist().directory();
      return LoadIdx(fashion, directory.empty() ? kFashionMnistDirectory : directory, split, limit);
    }
    case v1::Data::kMnist:
      if (data.mnist().directory().empty()) return no_directory(mnist);
      return LoadIdx(mnist, data.mnist().directory(), split, limit);
    case v1::Data::kCifar10:
      if (data.cifar10().directory().empty()) return no_directory(cifar10);
      return LoadCifar(cifar10, data.cifar10().directory(), split, limit, false);
    case v1::Data::kCifar100:
      if (data.cifar100().directory().empty()) return no_directory(cifar100);
      return LoadCifar(cifar100, data.cifar100().directory(), split, limit, true);
    case v1::Data::kText: return LoadText(data.text(), split, limit, context);
    case v1::Data::KIND_NOT_SET: break;
  }
  return absl::InvalidArgumentError("data: names no data set; set fashion_mnist, mnist, cifar10, cifar100 or text");
}

}  // namespace resbm::data
