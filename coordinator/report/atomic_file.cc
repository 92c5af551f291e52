#include "coordinator/report/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

absl::Status SystemError(const std::string& path) {
  const int error = errno;
  const absl::Status status = absl::ErrnoToStatus(error, path);
  if (error != ENOSPC && error != EDQUOT) return status;
  return absl::ResourceExhaustedError(absl::StrCat(status.message(), "; make room on that disk"));
}

absl::Status WriteAndSync(const std::string& path, absl::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return SystemError(path);
  absl::Status status = WriteAll(fd, bytes, path);
  if (status.ok() && fsync(fd) != 0) status = SystemError(path);
  // Some file systems say only now that the disk is full.
  if (close(fd) != 0 && status.ok()) status = SystemError(path);
  return status;
}

}  // namespace

absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return SystemError(path);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status SyncDirectory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return SystemError(directory);
  const absl::Status status = fsync(fd) == 0 ? absl::OkStatus() : SystemError(directory);
  close(fd);
  return status;
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes) {
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  absl::Status status = WriteAndSync(temporary, bytes);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) status = SystemError(path);
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return SyncDirectory(folder.empty() ? "." : folder);
}

}  // namespace resbm::coordinator
