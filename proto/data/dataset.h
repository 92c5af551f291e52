// What is trained and evaluated on: samples in memory, each an input for the first stage and a target for the
// last.
#ifndef RESBM_PROTO_DATA_DATASET_H_
#define RESBM_PROTO_DATA_DATASET_H_

#include <cstdint>
#include <vector>

#include "proto/base/encoded_tensor.h"

namespace resbm::data {

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
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  // Of one input, uint8.
  virtual std::vector<std::int64_t> input_dims() const = 0;
  // 0 <= index < size(). The inputs of all samples lie one behind the other.
  virtual const std::uint8_t* input(std::int64_t index) const = 0;
  // Of one target; without dims a single value.
  virtual WireDtype target_dtype() const = 0;
  virtual std::vector<std::int64_t> target_dims() const = 0;
  virtual void WriteTarget(std::int64_t index, char* out) const = 0;
  // Targets are below it.
  virtual std::int64_t classes() const = 0;
  // What the sample adds to the weight of its step, by which sums are divided: 1, or its tokens that have a target.
  virtual std::int64_t weight(std::int64_t index) const = 0;
  // Null where samples are no images.
  virtual const ImageSize* image_size() const { return nullptr; }
};

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_DATASET_H_
