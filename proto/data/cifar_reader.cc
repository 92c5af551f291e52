#include "proto/data/cifar_reader.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/data/data_file.h"
#include "proto/base/status.h"

namespace resbm::data {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{4} << 30;

absl::StatusOr<DataFile> OpenWhole(const std::string& path, std::uint64_t record_bytes) {
  RESBM_ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
  if (file.compressed()) return absl::InvalidArgumentError(absl::StrCat(path, ": compressed; unpack it first"));
  const std::uint64_t bytes = file.max_bytes();
  if (bytes == 0 || bytes % record_bytes != 0) {
    const std::uint64_t whole = (bytes / record_bytes + 1) * record_bytes;
    return absl::DataLossError(absl::StrCat(path, ": a multiple of ", record_bytes, " bytes expected (say ", whole,
                                            "), ", bytes, " found; unpack the archive again"));
  }
  if (bytes > kMaxFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", bytes, " bytes; at most ", kMaxFileBytes, " are read"));
  }
  return file;
}

}  // namespace

absl::Status ReadCifar(absl::Span<const std::string> paths, int label_bytes, std::int64_t limit, CifarImages* images) {
  const std::uint64_t record_bytes = label_bytes + kCifarImageBytes;
  std::vector<DataFile> files;
  for (const std::string& path : paths) {
    RESBM_ASSIGN_OR_RETURN(DataFile file, OpenWhole(path, record_bytes));
    files.push_back(std::move(file));
  }
  std::vector<std::uint8_t> record;
  for (DataFile& file : files) {
    std::uint64_t left = file.max_bytes() / record_bytes;
    if (limit > 0) left = std::min<std::uint64_t>(left, limit - images->labels.size());
    images->pixels.reserve(images->pixels.size() + left * kCifarImageBytes);
    images->labels.reserve(images->labels.size() + left);
    for (; left > 0; --left) {
      record.clear();
      RESBM_RETURN_IF_ERROR(file.Append(record_bytes, &record));
      images->labels.push_back(record[label_bytes - 1]);
      images->pixels.insert(images->pixels.end(), record.begin() + label_bytes, record.end());
    }
  }
  return absl::OkStatus();
}

}  // namespace resbm::data
