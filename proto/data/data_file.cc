#include "proto/data/data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace resbm::data {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
constexpr std::uint64_t kMaxExpansion = 1032;

}  // namespace

struct DataFile::Impl {
  ~Impl() {
    if (file != nullptr) gzclose(file);
  }

  absl::Status Short(std::uint64_t missing) const {
    return absl::DataLossError(absl::StrCat(path, ": truncated: ", position + missing, " bytes expected, ", position,
                                            " found", compressed ? " (unpacked)" : "",
                                            "; download or copy the file again"));
  }

  std::string path;
  gzFile file = nullptr;
  std::uint64_t disk_bytes = 0;
  bool compressed = false;
  std::uint64_t position = 0;
};

DataFile::DataFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DataFile::~DataFile() = default;
DataFile::DataFile(DataFile&&) noexcept = default;
DataFile& DataFile::operator=(DataFile&&) noexcept = default;

absl::StatusOr<DataFile> DataFile::Open(const std::string& path) {
  // O_NONBLOCK: a named pipe must not hang us before it is refused.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->disk_bytes = info.st_size;
  impl->file = gzdopen(fd, "rb");
  if (impl->file == nullptr) {
    close(fd);
    return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory to read it"));
  }
  gzbuffer(impl->file, 256 * 1024);
  impl->compressed = gzdirect(impl->file) == 0;
  return DataFile(std::move(impl));
}

absl::StatusOr<std::size_t> DataFile::Read(std::uint8_t* to, std::size_t size) {
  std::size_t got = 0;
  while (got < size) {
    const int n = gzread(impl_->file, to + got, static_cast<unsigned>(std::min(size - got, kPieceBytes)));
    if (n < 0) {
      int code = Z_OK;
      const char* text = gzerror(impl_->file, &code);
      return absl::DataLossError(
          absl::StrCat(impl_->path, ": damaged after ", impl_->position, " bytes (", text, "); copy the file again"));
    }
    if (n == 0) break;
    got += n;
    impl_->position += n;
  }
  return got;
}

absl::Status DataFile::Append(std::uint64_t size, std::vector<std::uint8_t>* to) {
  while (size > 0) {
    // At most as much again as was really there already.
    const std::uint64_t piece = std::min<std::uint64_t>(size, std::max(to->size(), kPieceBytes));
    const std::size_t old_size = to->size();
    to->resize(old_size + piece);
    RESBM_ASSIGN_OR_RETURN(const std::size_t got, Read(to->data() + old_size, piece));
    if (got < piece) return impl_->Short(size - got);
    size -= got;
  }
  return absl::OkStatus();
}

absl::Status DataFile::Skip(std::uint64_t size) {
  std::vector<std::uint8_t> scratch(std::min<std::uint64_t>(size, kPieceBytes));
  while (size > 0) {
    const std::size_t piece = std::min<std::uint64_t>(size, scratch.size());
    RESBM_ASSIGN_OR_RETURN(const std::size_t got, Read(scratch.data(), piece));
    if (got < piece) return impl_->Short(size - got);
    size -= got;
  }
  return absl::OkStatus();
}

absl::Status DataFile::ExpectEnd() {
  const std::uint64_t expected = impl_->position;
  std::uint8_t byte;
  RESBM_ASSIGN_OR_RETURN(const std::size_t got, Read(&byte, 1));
  if (got != 0) {
    return absl::DataLossError(absl::StrCat(impl_->path, ": ", expected, " bytes expected, more found",
                                            "; download or copy the file again"));
  }
  int code = Z_OK;
  gzerror(impl_->file, &code);
  // A file cut within the stream's end gives all its data and only this hint.
  if (code == Z_BUF_ERROR) {
    return absl::DataLossError(absl::StrCat(impl_->path, ": truncated: the end of the gzip stream is missing",
                                            "; download or copy the file again"));
  }
  return absl::OkStatus();
}

std::uint64_t DataFile::max_bytes() const {
  if (!impl_->compressed) return impl_->disk_bytes;
  if (impl_->disk_bytes > std::numeric_limits<std::uint64_t>::max() / kMaxExpansion) {
    return std::numeric_limits<std::uint64_t>::max();
  }
  return impl_->disk_bytes * kMaxExpansion;
}

bool DataFile::compressed() const { return impl_->compressed; }
const std::string& DataFile::path() const { return impl_->path; }

}  // namespace resbm::data
