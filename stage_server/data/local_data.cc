#include "stage_server/data/local_data.h"

#include <cstdint>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/status.h"
#include "proto/data/dataset.h"
#include "proto/data/dataset_hash.h"
#include "proto/data/load_dataset.h"
#include "proto/data/split.h"

namespace resbm::stage_server {
namespace {

absl::StatusOr<std::shared_ptr<const data::Dataset>> LoadCopy(const v1::Data& data, data::Split split,
                                                              std::int64_t context, std::uint64_t wanted) {
  const char* const part = split == data::Split::kTrain ? "training" : "test";
  RESBM_ASSIGN_OR_RETURN(std::shared_ptr<const data::Dataset> dataset, data::LoadDataset(data, split, context));
  const std::uint64_t hash = data::HashOf(*dataset);
  if (hash == wanted) return dataset;
  return absl::FailedPreconditionError(absl::StrFormat(
      "the %s data here is not the coordinator's: %d samples with hash %016x, not %016x; copy its files "
      "into the folder of --data, or leave out data.local",
      part, dataset->size(), hash, wanted));
}

// The last name of a path; empty where that leads out of its folder.
std::string NameOf(const std::string& path) {
  const std::filesystem::path clean = std::filesystem::path(path).lexically_normal();
  const std::string name = clean.has_filename() ? clean.filename() : clean.parent_path().filename();
  const bool leaves = name == "." || name == ".." || name.find('\0') != std::string::npos;
  return leaves ? "" : name;
}

}  // namespace

v1::Data Within(const std::string& folder, v1::Data data) {
  switch (data.kind_case()) {
    case v1::Data::kFashionMnist: data.mutable_fashion_mnist()->set_directory(folder); break;
    case v1::Data::kMnist: data.mutable_mnist()->set_directory(folder); break;
    case v1::Data::kCifar10: data.mutable_cifar10()->set_directory(folder); break;
    case v1::Data::kCifar100: data.mutable_cifar100()->set_directory(folder); break;
    case v1::Data::kText:
      for (std::string& file : *data.mutable_text()->mutable_file()) file = absl::StrCat(folder, "/", NameOf(file));
      break;
    case v1::Data::KIND_NOT_SET: break;
  }
  return data;
}

absl::Status LocalData::Load(const v1::LocalData& spec) {
  if (folder_.empty()) {
    return absl::FailedPreconditionError(
        "the job wants this stage to read its own copy of the data, and this stage server has none: start it with "
        "--data FOLDER, or leave out data.local");
  }
  if (spec.samples() < 1 || spec.micro_batches() < 1 || spec.evaluation_micro_batch() < 1) {
    return absl::InvalidArgumentError(absl::StrCat("local_data: ", spec.samples(), " samples in ", spec.micro_batches(),
                                                   " micro-batches, ", spec.evaluation_micro_batch(),
                                                   " of an evaluation; at least 1"));
  }
  const v1::Data data = Within(folder_, spec.data());
  // So that no more is read than lies there.
  const std::set<std::string> names(data.text().file().begin(), data.text().file().end());
  if (static_cast<int>(names.size()) < data.text().file_size()) {
    return absl::InvalidArgumentError(
        "data.text.file names two files of the same name, which one folder of copies cannot hold");
  }
  std::shared_ptr<const data::Dataset> train, test;
  if (spec.has_train_hash()) {
    RESBM_ASSIGN_OR_RETURN(train, LoadCopy(data, data::Split::kTrain, spec.context(), spec.train_hash()));
  }
  if (spec.has_test_hash()) {
    RESBM_ASSIGN_OR_RETURN(test, LoadCopy(data, data::Split::kTest, spec.context(), spec.test_hash()));
  }
  data::BatchSource::Options options;
  options.seed = spec.seed();
  options.samples = spec.samples();
  options.micro_batches = spec.micro_batches();
  options.augment = data.augment();
  options.evaluation_micro_batch = spec.evaluation_micro_batch();
  auto source = std::make_shared<const data::BatchSource>(options, std::move(train), std::move(test));
  MutexLock lock(mutex_);
  source_ = std::move(source);
  return absl::OkStatus();
}

void LocalData::Clear() {
  MutexLock lock(mutex_);
  source_.reset();
}

std::shared_ptr<const data::BatchSource> LocalData::source() const {
  MutexLock lock(mutex_);
  return source_;
}

}  // namespace resbm::stage_server
