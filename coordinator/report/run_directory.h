// The folder that holds what a run leaves behind. One coordinator at a time uses it.
#ifndef RESBM_COORDINATOR_REPORT_RUN_DIRECTORY_H_
#define RESBM_COORDINATOR_REPORT_RUN_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace resbm::coordinator {

// Names within a run directory.
inline constexpr char kJobFile[] = "job.textproto";
inline constexpr char kMetricsFile[] = "metrics.jsonl";
inline constexpr char kSummaryFile[] = "summary.json";
inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kTraceFile[] = "trace.json";
inline constexpr char kReportFile[] = "report.html";
inline constexpr char kEpochFile[] = "epoch";  // of the last coordinator's fence
inline constexpr char kLockFile[] = "lock";

// Holds the folder's lock (flock) as long as it lives. Not thread-safe.
class RunDirectory {
 public:
  struct Options {
    // --run-dir; empty: <root>/<name>-<n>, n the first from 1 that is free.
    std::string path;
    std::string root = "runs";
    std::string name = "job";
  };

  // A new one, with the folders above it. ALREADY_EXISTS: `path` holds something; nothing was touched.
  // FAILED_PRECONDITION: another process is using it (names it). Others as the system says.
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Create(const Options& options);
  // One that is there. NOT_FOUND: no such folder. FAILED_PRECONDITION as above.
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Open(const std::string& path);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string File(absl::string_view name) const;

  // The fence's epoch for this life of the coordinator: 1 the first time, one more than the last in every
  // later life. On disk, synced, before it returns. DATA_LOSS: the epoch file holds no number. Errors of
  // WriteFileAtomically.
  absl::StatusOr<std::uint64_t> NextEpoch();

  // WriteFileAtomically(File(name), bytes).
  absl::Status Write(absl::string_view name, absl::string_view bytes);

  // For a run that came to nothing: removes what Write, NextEpoch and Create made (and `metrics.jsonl` when
  // it is empty), and the folder if it is empty then and Create made it. Best effort.
  void Abandon();

 private:
  RunDirectory(std::string path, int lock_fd) : path_(std::move(path)), lock_fd_(lock_fd) {}
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Lock(std::string path);

  const std::string path_;
  int lock_fd_;
  bool created_folder_ = false;
  std::set<std::string> written_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_RUN_DIRECTORY_H_
