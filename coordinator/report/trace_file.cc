#include "coordinator/report/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

constexpr char kHead[] = "{\"traceEvents\":[\n";

std::string Tail(absl::string_view about) {
  return absl::StrCat("\n],\"displayTimeUnit\":\"ms\",\"otherData\":", about, "}\n");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TraceFile>> TraceFile::Create(const std::string& path, absl::string_view event) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  std::unique_ptr<TraceFile> file(new TraceFile(path, fd));
  RESBM_RETURN_IF_ERROR(file->Add(absl::StrCat(kHead, event), "{}"));
  return file;
}

TraceFile::~TraceFile() { close(fd_); }

absl::Status TraceFile::WriteAt(std::int64_t offset, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (written < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      const absl::Status status = absl::ErrnoToStatus(error, path_);
      if (error != ENOSPC && error != EDQUOT) return status;
      return absl::ResourceExhaustedError(absl::StrCat(status.message(), "; make room on that disk"));
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += written;
  }
  return absl::OkStatus();
}

absl::Status TraceFile::Add(absl::string_view events, absl::string_view about) {
  std::string tail = Tail(about);
  // Over the whole of the old tail, so that nothing of it is left behind the new one.
  const std::size_t added = events.size() + tail.size();
  if (added < tail_.size()) tail.append(tail_.size() - added, ' ');
  const absl::Status status = WriteAt(end_of_events_, absl::StrCat(events, tail));
  if (!status.ok()) {
    // The room for it was there before.
    if (ftruncate(fd_, end_of_events_) == 0) (void)WriteAt(end_of_events_, tail_);
    return status;
  }
  end_of_events_ += static_cast<std::int64_t>(events.size());
  tail_ = std::move(tail);
  return absl::OkStatus();
}

}  // namespace resbm::coordinator
