#include "proto/data/idx_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/data/data_file.h"
#include "proto/base/status.h"

namespace resbm::data {
namespace {

constexpr std::uint32_t kImagesMagic = 2051;
constexpr std::uint32_t kLabelsMagic = 2049;
constexpr std::uint32_t kMaxSide = 4096;

absl::StatusOr<std::vector<std::uint32_t>> ReadHeader(DataFile& file, std::uint32_t magic, int dims) {
  std::vector<std::uint8_t> bytes;
  RESBM_RETURN_IF_ERROR(file.Append(4 * (1 + dims), &bytes));
  std::vector<std::uint32_t> words;
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    words.push_back(std::uint32_t{bytes[i]} << 24 | std::uint32_t{bytes[i + 1]} << 16 |
                    std::uint32_t{bytes[i + 2]} << 8 | std::uint32_t{bytes[i + 3]});
  }
  if (words[0] != magic) {
    return absl::InvalidArgumentError(absl::StrCat(file.path(), ": begins with ", words[0], ", but an IDX file of ",
                                                   magic == kImagesMagic ? "images" : "labels", " begins with ",
                                                   magic));
  }
  if (words[1] == 0) return absl::InvalidArgumentError(absl::StrCat(file.path(), ": holds nothing (count 0)"));
  return words;
}

// What follows the header: `count` items of `item_bytes` (at most kMaxSide^2, so nothing overflows).
absl::Status ReadItems(DataFile& file, int header_bytes, std::uint64_t count, std::uint64_t item_bytes,
                       std::uint64_t keep, std::vector<std::uint8_t>* items) {
  const std::uint64_t expected = header_bytes + count * item_bytes;
  if (expected > kMaxIdxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(file.path(), ": its header announces ", expected,
                                                   " bytes; at most ", kMaxIdxBytes, " are read"));
  }
  if (file.compressed() ? expected > file.max_bytes() : expected != file.max_bytes()) {
    return absl::DataLossError(absl::StrCat(file.path(), ": ", expected, " bytes expected (", count, " items), ",
                                            file.compressed() ? "at most " : "", file.max_bytes(),
                                            " found; download or copy the file again"));
  }
  RESBM_RETURN_IF_ERROR(file.Append(keep * item_bytes, items));
  RESBM_RETURN_IF_ERROR(file.Skip((count - keep) * item_bytes));
  return file.ExpectEnd();
}

std::uint64_t Kept(std::uint64_t count, std::int64_t limit) {
  return limit > 0 ? std::min<std::uint64_t>(count, limit) : count;
}

}  // namespace

absl::StatusOr<IdxImages> ReadIdxImages(const std::string& path, std::int64_t limit) {
  RESBM_ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
  RESBM_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> header, ReadHeader(file, kImagesMagic, 3));
  const std::uint64_t rows = header[2], columns = header[3];
  if (rows < 1 || rows > kMaxSide || columns < 1 || columns > kMaxSide) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": images of ", rows, "x", columns, "; a side has 1 to ", kMaxSide, " pixels"));
  }
  IdxImages images;
  images.count = Kept(header[1], limit);
  images.rows = rows;
  images.columns = columns;
  RESBM_RETURN_IF_ERROR(ReadItems(file, 16, header[1], rows * columns, images.count, &images.pixels));
  return images;
}

absl::StatusOr<std::vector<std::uint8_t>> ReadIdxLabels(const std::string& path, std::int64_t limit) {
  RESBM_ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
  RESBM_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> header, ReadHeader(file, kLabelsMagic, 1));
  std::vector<std::uint8_t> labels;
  RESBM_RETURN_IF_ERROR(ReadItems(file, 8, header[1], 1, Kept(header[1], limit), &labels));
  return labels;
}

}  // namespace resbm::data
