#include "proto/data/text_dataset.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace resbm::data {

absl::StatusOr<std::shared_ptr<const TextDataset>> TextDataset::Create(std::vector<std::uint8_t> text,
                                                                       std::int64_t context) {
  if (context < 1 || context > kLongestContext) {
    return absl::InvalidArgumentError(absl::StrCat("a context of ", context, " bytes; 1 to ", kLongestContext));
  }
  if (text.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(text.size(), text.size() == 1 ? " byte" : " bytes", " of text; at least 2 are needed"));
  }
  std::shared_ptr<TextDataset> dataset(new TextDataset());
  dataset->context_ = context;
  dataset->predicted_ = static_cast<std::int64_t>(text.size()) - 1;
  const std::size_t whole_windows = static_cast<std::size_t>(dataset->size() * context);
  dataset->bytes_ = std::move(text);
  if (dataset->bytes_.size() < whole_windows) dataset->bytes_.resize(whole_windows);
  return dataset;
}

std::int64_t TextDataset::weight(std::int64_t index) const { return std::min(context_, predicted_ - index * context_); }

void TextDataset::WriteTarget(std::int64_t index, char* out) const {
  const std::uint8_t* next = input(index) + 1;
  const std::int64_t valid = weight(index);
  for (std::int64_t i = 0; i < context_; ++i, out += sizeof(std::int16_t)) {
    const std::int16_t target = i < valid ? std::int16_t{next[i]} : kMaskedTarget;
    std::memcpy(out, &target, sizeof(target));
  }
}

}  // namespace resbm::data
