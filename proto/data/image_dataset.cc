#include "proto/data/image_dataset.h"

#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace resbm::data {

absl::StatusOr<std::shared_ptr<const ImageDataset>> ImageDataset::Create(ImageSize image_size, std::int64_t classes,
                                                                         std::vector<std::uint8_t> pixels,
                                                                         std::vector<std::uint8_t> labels) {
  if (labels.empty()) return absl::InvalidArgumentError("no samples");
  if (pixels.size() != labels.size() * image_size.bytes()) {
    return absl::InvalidArgumentError(absl::StrCat(pixels.size(), " bytes of pixels for ", labels.size(), " images of ",
                                                   image_size.bytes(), " bytes"));
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= classes) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", labels[i], " of sample ", i, " is not one of ", classes, " classes"));
    }
  }
  std::shared_ptr<ImageDataset> dataset(new ImageDataset());
  dataset->image_size_ = image_size;
  dataset->classes_ = classes;
  dataset->pixels_ = std::move(pixels);
  dataset->labels_ = std::move(labels);
  return dataset;
}

void ImageDataset::WriteTarget(std::int64_t index, char* out) const {
  const std::int64_t label = labels_[index];
  std::memcpy(out, &label, sizeof(label));
}

}  // namespace resbm::data
