// The IDX format of MNIST and Fashion-MNIST (http://yann.lecun.com/exdb/mnist, "file formats"), plain or
// gzip: big-endian u32 magic (2051 images, 2049 labels), count, for images rows and columns; then bytes.
#ifndef RESBM_PROTO_DATA_IDX_READER_H_
#define RESBM_PROTO_DATA_IDX_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace resbm::data {

// Largest file content that is read, unpacked: bounds what a gzip file can make us do.
inline constexpr std::uint64_t kMaxIdxBytes = std::uint64_t{4} << 30;

struct IdxImages {
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::uint8_t> pixels;  // [count, rows, columns]
};

// The whole file is read and checked; the first `limit` items are kept (0 = all). Any content is safe: the
// header is compared with the file's size before anything is allocated.
// DATA_LOSS: truncated, longer than its header says, or corrupt gzip (expected and found bytes).
// INVALID_ARGUMENT: another magic, no items, an image side of 0 or over 4096, more than kMaxIdxBytes.
// Errors of DataFile::Open.
absl::StatusOr<IdxImages> ReadIdxImages(const std::string& path, std::int64_t limit);
absl::StatusOr<std::vector<std::uint8_t>> ReadIdxLabels(const std::string& path, std::int64_t limit);

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_IDX_READER_H_
