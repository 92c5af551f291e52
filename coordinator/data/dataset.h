// Images and labels in memory, and where they come from.
#ifndef RESBM_COORDINATOR_DATA_DATASET_H_
#define RESBM_COORDINATOR_DATA_DATASET_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

// Of one image: uint8, [channels, height, width].
struct ImageSize {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t bytes() const { return channels * height * width; }
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// Never changes after it was made: any thread. At least one sample.
class Dataset {
 public:
  // pixels: [labels.size(), channels, height, width]. INVALID_ARGUMENT: no samples, sizes that do not fit,
  // a label outside [0, classes) (names the sample).
  static absl::StatusOr<Dataset> Create(ImageSize image_size, std::int64_t classes, std::vector<std::uint8_t> pixels,
                                        std::vector<std::uint8_t> labels);

  std::int64_t size() const { return static_cast<std::int64_t>(labels_.size()); }
  const ImageSize& image_size() const { return image_size_; }
  std::int64_t classes() const { return classes_; }
  // image_size().bytes() bytes; 0 <= index < size().
  const std::uint8_t* image(std::int64_t index) const { return pixels_.data() + index * image_size_.bytes(); }
  std::int64_t label(std::int64_t index) const { return labels_[index]; }

 private:
  Dataset() = default;

  ImageSize image_size_;
  std::int64_t classes_ = 0;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint8_t> labels_;
};

enum class Split { kTrain, kTest };

// Reads the files that the job names; limit_train and limit_test keep the first samples. An empty
// fashion_mnist.directory is that of Debian's dataset-fashion-mnist; CIFAR may also lie in the folder that
// its archive unpacks to, within the directory. Messages name field, file and what to do.
// NOT_FOUND: a file is missing. DATA_LOSS: truncated or damaged (expected and found bytes).
// INVALID_ARGUMENT: no data set or no directory given, a negative limit, a file of another kind, counts of
// images and labels that differ, a label outside the classes. PERMISSION_DENIED and the like as open(2).
absl::StatusOr<Dataset> LoadDataset(const v1::Data& data, Split split);

// What the first stage subtracts and divides by, per channel, after dividing bytes by 255: mean and
// standard deviation of the whole training set, known figures of each data set (so that they do not
// depend on limit_train). Empty when `data` names none of them.
struct Normalization {
  std::vector<float> mean;
  std::vector<float> standard_deviation;
};
Normalization NormalizationOf(const v1::Data& data);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_DATA_DATASET_H_
