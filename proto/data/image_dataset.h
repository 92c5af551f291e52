// Images with a class each.
#ifndef RESBM_PROTO_DATA_IMAGE_DATASET_H_
#define RESBM_PROTO_DATA_IMAGE_DATASET_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/data/dataset.h"

namespace resbm::data {

// Inputs [channels, height, width]; targets int64, the class.
class ImageDataset : public Dataset {
 public:
  // pixels: [labels.size(), channels, height, width]. INVALID_ARGUMENT: no samples, sizes that do not fit,
  // a label outside [0, classes) (names the sample).
  static absl::StatusOr<std::shared_ptr<const ImageDataset>> Create(ImageSize image_size, std::int64_t classes,
                                                                    std::vector<std::uint8_t> pixels,
                                                                    std::vector<std::uint8_t> labels);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::vector<std::int64_t> input_dims() const override {
    return {image_size_.channels, image_size_.height, image_size_.width};
  }
  const std::uint8_t* input(std::int64_t index) const override { return pixels_.data() + index * image_size_.bytes(); }
  WireDtype target_dtype() const override { return WireDtype::kInt64; }
  std::vector<std::int64_t> target_dims() const override { return {}; }
  void WriteTarget(std::int64_t index, char* out) const override;
  std::int64_t classes() const override { return classes_; }
  std::int64_t weight(std::int64_t) const override { return 1; }
  const ImageSize* image_size() const override { return &image_size_; }

  std::int64_t label(std::int64_t index) const { return labels_[index]; }

 private:
  ImageDataset() = default;

  ImageSize image_size_;
  std::int64_t classes_ = 0;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint8_t> labels_;
};

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_IMAGE_DATASET_H_
