#include "coordinator/data/dataset.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "coordinator/data/cifar_reader.h"
#include "coordinator/data/idx_reader.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

constexpr char kFashionMnistDirectory[] = "/usr/share/datasets/fashion-mnist";

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

absl::StatusOr<Dataset> LoadIdx(const Source& source, const std::string& directory, Split split, std::int64_t limit) {
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
  auto dataset = Dataset::Create({1, images.rows, images.columns}, 10, std::move(images.pixels), std::move(labels));
  if (!dataset.ok()) return Annotate(dataset.status(), labels_path);
  return dataset;
}

absl::StatusOr<Dataset> LoadCifar(const Source& source, std::string directory, Split split, std::int64_t limit,
                                  bool fine) {
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
  auto dataset =
      Dataset::Create({3, 32, 32}, fine ? 100 : 10, std::move(images.pixels), std::move(images.labels));
  if (!dataset.ok()) return Annotate(dataset.status(), directory);
  return dataset;
}

}  // namespace

absl::StatusOr<Dataset> Dataset::Create(ImageSize image_size, std::int64_t classes, std::vector<std::uint8_t> pixels,
                                        std::vector<std::uint8_t> labels) {
  if (labels.empty()) return absl::InvalidArgumentError("no samples");
  if (pixels.size() != labels.size() * image_size.bytes()) {
    return absl::InvalidArgumentError(absl::StrCat(pixels.size(), " bytes of pixels for ", labels.size(),
                                                   " images of ", image_size.bytes(), " bytes"));
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= classes) {
      return absl::InvalidArgumentError(absl::StrCat("label ", labels[i], " of sample ", i, " is not one of ", classes,
                                                     " classes"));
    }
  }
  Dataset dataset;
  dataset.image_size_ = image_size;
  dataset.classes_ = classes;
  dataset.pixels_ = std::move(pixels);
  dataset.labels_ = std::move(labels);
  return dataset;
}

absl::StatusOr<Dataset> LoadDataset(const v1::Data& data, Split split) {
  const std::int64_t limit = split == Split::kTrain ? data.limit_train() : data.limit_test();
  if (limit < 0) {
    return absl::InvalidArgumentError(absl::StrCat(split == Split::kTrain ? "data.limit_train: " : "data.limit_test: ",
                                                   limit, " samples; 0 means all"));
  }
  const Source fashion = {"data.fashion_mnist", "run \"apt-get install dataset-fashion-mnist\", which fills "
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
    case v1::Data::kText:
    case v1::Data::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("data: names no images; set fashion_mnist, mnist, cifar10 or cifar100");
}

Normalization NormalizationOf(const v1::Data& data) {
  switch (data.kind_case()) {
    case v1::Data::kFashionMnist: return {{0.2860f}, {0.3530f}};
    case v1::Data::kMnist: return {{0.1307f}, {0.3081f}};
    case v1::Data::kCifar10: return {{0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f}};
    case v1::Data::kCifar100: return {{0.5071f, 0.4865f, 0.4409f}, {0.2673f, 0.2564f, 0.2762f}};
    case v1::Data::kText:
    case v1::Data::KIND_NOT_SET: break;
  }
  return {};
}

}  // namespace resbm::coordinator
