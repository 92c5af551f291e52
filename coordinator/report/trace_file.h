// trace.json: Chrome's trace format, as Perfetto and chrome://tracing read it. A complete JSON object after
// every piece that is added: its end is written again behind it, in the same write.
#ifndef RESBM_COORDINATOR_REPORT_TRACE_FILE_H_
#define RESBM_COORDINATOR_REPORT_TRACE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace resbm::coordinator {

// For one thread.
class TraceFile {
 public:
  // Makes the file with one event, a JSON object; what is there is overwritten. Errors as open(2) and Add.
  static absl::StatusOr<std::unique_ptr<TraceFile>> Create(const std::string& path, absl::string_view event);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Adds events: JSON objects, each after a comma. `about`: a JSON object, which becomes the file's otherData
  // instead of the one before. After an error the file is as it was before. RESOURCE_EXHAUSTED: disk full; others as
  // pwrite(2).
  absl::Status Add(absl::string_view events, absl::string_view about);

 private:
  TraceFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status WriteAt(std::int64_t offset, absl::string_view bytes);

  const std::string path_;
  const int fd_;
  std::int64_t end_of_events_ = 0;
  std::string tail_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_TRACE_FILE_H_
