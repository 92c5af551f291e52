#include "coordinator/report/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coordinator/report/atomic_file.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

namespace fs = std::filesystem;

absl::Status MakeParents(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  if (parent.empty()) return absl::OkStatus();
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return absl::ErrnoToStatus(error.value(), parent.string());
  return absl::OkStatus();
}

// True: made. False: it was there already.
absl::StatusOr<bool> MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0) {
    const fs::path parent = fs::path(path).parent_path();
    RESBM_RETURN_IF_ERROR(SyncDirectory(parent.empty() ? "." : parent.string()));
    return true;
  }
  if (errno == EEXIST) return false;
  return absl::ErrnoToStatus(errno, path);
}

// But for the lock file.
absl::Status CheckEmpty(const std::string& path) {
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename() == kLockFile) continue;
    return absl::AlreadyExistsError(absl::StrCat("run directory ", path, " already holds ",
                                                 it->path().filename().string(),
                                                 "; it is never overwritten: give another --run-dir or move it away"));
  }
  if (error) return absl::ErrnoToStatus(error.value(), path);
  return absl::OkStatus();
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line.substr(0, 80);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunDirectory>> RunDirectory::Lock(std::string path) {
  const std::string lock = absl::StrCat(path, "/", kLockFile);
  // Close-on-exec: a stage server that we start must not hold it after us.
  const int fd = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return absl::ErrnoToStatus(errno, lock);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(fd);
    if (error != EWOULDBLOCK) return absl::ErrnoToStatus(error, lock);
    return absl::FailedPreconditionError(absl::StrCat("run directory ", path, " is in use by ", FirstLine(lock),
                                                      "; stop that run first, or give another --run-dir"));
  }
  std::unique_ptr<RunDirectory> directory(new RunDirectory(std::move(path), fd));
  if (ftruncate(fd, 0) != 0) return absl::ErrnoToStatus(errno, lock);
  RESBM_RETURN_IF_ERROR(WriteAll(fd, absl::StrCat("process ", getpid(), "\n"), lock));
  return directory;
}

absl::StatusOr<std::unique_ptr<RunDirectory>> RunDirectory::Create(const Options& options) {
  std::string path = options.path;
  // "a/b/" and "a/b" are the same folder, but not the same parent_path().
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  bool created = false;
  if (path.empty()) {
    for (int n = 1; !created; ++n) {
      path = absl::StrCat(options.root, "/", options.name, "-", n);
      RESBM_RETURN_IF_ERROR(MakeParents(path));
      RESBM_ASSIGN_OR_RETURN(created, MakeFolder(path));
    }
  } else {
    RESBM_RETURN_IF_ERROR(MakeParents(path));
    RESBM_ASSIGN_OR_RETURN(created, MakeFolder(path));
  }
  // Before the lock file is made, so that a folder which is refused stays as it is ...
  RESBM_RETURN_IF_ERROR(CheckEmpty(path));
  RESBM_ASSIGN_OR_RETURN(std::unique_ptr<RunDirectory> directory, Lock(std::move(path)));
  // ... and after, because another run may have come and gone in between.
  RESBM_RETURN_IF_ERROR(CheckEmpty(directory->path()));
  directory->created_folder_ = created;
  return directory;
}

absl::StatusOr<std::unique_ptr<RunDirectory>> RunDirectory::Open(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return absl::NotFoundError(absl::StrCat("no run directory ", path, "; check --run-dir"));
  }
  return Lock(path);
}

RunDirectory::~RunDirectory() { close(lock_fd_); }

std::string RunDirectory::File(absl::string_view name) const { return absl::StrCat(path_, "/", name); }

absl::StatusOr<std::uint64_t> RunDirectory::NextEpoch() {
  const std::string path = File(kEpochFile);
  std::uint64_t last = 0;
  std::error_code error;
  if (fs::exists(path, error) || error) {
    const std::string text = FirstLine(path);
    if (!absl::SimpleAtoi(text, &last) || last == std::numeric_limits<std::uint64_t>::max()) {
      return absl::DataLossError(absl::StrCat(
          path, ": holds \"", absl::CEscape(text), "\" instead of the last coordinator's epoch; write a number into it "
          "that is at least as large as in any fence of metrics.jsonl"));
    }
  }
  RESBM_RETURN_IF_ERROR(Write(kEpochFile, absl::StrCat(last + 1, "\n")));
  return last + 1;
}

absl::Status RunDirectory::Write(absl::string_view name, absl::string_view bytes) {
  RESBM_RETURN_IF_ERROR(WriteFileAtomically(File(name), bytes));
  written_.insert(std::string(name));
  return absl::OkStatus();
}

void RunDirectory::Abandon() {
  std::error_code ignored;
  for (const std::string& name : written_) fs::remove(File(name), ignored);
  written_.clear();
  if (fs::is_regular_file(File(kMetricsFile), ignored) && fs::file_size(File(kMetricsFile), ignored) == 0) {
    fs::remove(File(kMetricsFile), ignored);
  }
  if (!created_folder_) return;
  fs::remove(File(kLockFile), ignored);
  // Fails, as it should, when something else is in it.
  fs::remove(path_, ignored);
}

}  // namespace resbm::coordinator
