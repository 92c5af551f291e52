// Text as bytes, in windows of a fixed length: each byte predicts the one that follows it.
#ifndef RESBM_PROTO_DATA_TEXT_DATASET_H_
#define RESBM_PROTO_DATA_TEXT_DATASET_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/data/dataset.h"

namespace resbm::data {

// Byte values: what a model of bytes takes and predicts.
inline constexpr std::int64_t kByteVocabulary = 256;
// Bytes of a sample at most: what a short text is padded to.
inline constexpr std::int64_t kLongestContext = 1 << 20;
// Target where there is nothing to predict: not in the loss and not in the weight.
inline constexpr std::int16_t kMaskedTarget = -1;

// Sample i has the bytes from i * context on as its input [context] and, as its int16 target [context], the bytes
// from i * context + 1 on. So every byte but the first is predicted exactly once. What the last sample lacks is 0 in
// its input and kMaskedTarget in its target.
class TextDataset : public Dataset {
 public:
  // INVALID_ARGUMENT: less than 2 bytes, which predict nothing; a context below 1 or above
  // kLongestContext.
  static absl::StatusOr<std::shared_ptr<const TextDataset>> Create(std::vector<std::uint8_t> text,
                                                                   std::int64_t context);

  std::int64_t size() const override { return (predicted_ - 1) / context_ + 1; }
  std::vector<std::int64_t> input_dims() const override { return {context_}; }
  const std::uint8_t* input(std::int64_t index) const override { return bytes_.data() + index * context_; }
  WireDtype target_dtype() const override { return WireDtype::kInt16; }
  std::vector<std::int64_t> target_dims() const override { return {context_}; }
  void WriteTarget(std::int64_t index, char* out) const override;
  std::int64_t classes() const override { return kByteVocabulary; }
  std::int64_t weight(std::int64_t index) const override;

 private:
  TextDataset() = default;

  std::int64_t context_ = 0;
  std::int64_t predicted_ = 0;       // bytes of the text but the first
  std::vector<std::uint8_t> bytes_;  // the text, and zeros up to size() * context_
};

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_TEXT_DATASET_H_
