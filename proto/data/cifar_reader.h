// The binary version of CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html): records of
// the label (CIFAR-100: coarse, then fine) and 3072 bytes, red, green and blue planes of 32x32.
#ifndef RESBM_PROTO_DATA_CIFAR_READER_H_
#define RESBM_PROTO_DATA_CIFAR_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace resbm::data {

inline constexpr std::int64_t kCifarImageBytes = 3 * 32 * 32;

struct CifarImages {
  std::vector<std::uint8_t> pixels;  // [count, 3, 32, 32]
  std::vector<std::uint8_t> labels;  // the last label byte: of CIFAR-100 the fine one
};

// Appends the records of `paths`, one file after the other, until `limit` are there (0 = all). All files
// must exist and be whole, also those beyond the limit. `label_bytes`: 1 CIFAR-10, 2 CIFAR-100.
// DATA_LOSS: a file is empty or not a whole number of records, or shrinks while read (expected and found
// bytes). INVALID_ARGUMENT: more than 4 GiB. Errors of DataFile::Open.
absl::Status ReadCifar(absl::Span<const std::string> paths, int label_bytes, std::int64_t limit, CifarImages* images);

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_CIFAR_READER_H_
