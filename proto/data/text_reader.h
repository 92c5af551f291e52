// Text files as one stretch of bytes.
#ifndef RESBM_PROTO_DATA_TEXT_READER_H_
#define RESBM_PROTO_DATA_TEXT_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/data/split.h"

namespace resbm::data {

// Most text that is read, unpacked: bounds what a gzip file can make us do.
inline constexpr std::uint64_t kMaxTextBytes = std::uint64_t{4} << 30;

// The files of `paths` in their order, plain or gzip, with nothing between them; of a folder those whose names end in
// ".txt" or ".txt.gz", by name (hidden ones not). A leading "~/" is $HOME. Of each file of n bytes the last
// floor(n * test_share) are the test split and the others the training split.
// Messages begin with the path. NOT_FOUND: no such file, a folder without such files. INVALID_ARGUMENT: no paths, a
// test_share outside [0, 1),
// more than kMaxTextBytes of both splits together. Errors of DataFile.
absl::StatusOr<std::vector<std::uint8_t>> ReadText(absl::Span<const std::string> paths, Split split, double test_share);

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_TEXT_READER_H_
