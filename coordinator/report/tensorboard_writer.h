// events.out.tfevents.*: what TensorBoard draws. A file of records, each with its length and checksums; the messages
// are in tensorboard.proto.
#ifndef RESBM_COORDINATOR_REPORT_TENSORBOARD_WRITER_H_
#define RESBM_COORDINATOR_REPORT_TENSORBOARD_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace resbm::coordinator {

// One record as it stands in the file: length (uint64, little-endian), masked CRC-32C of the length, the bytes,
// masked CRC-32C of them.
std::string TensorboardRecord(absl::string_view bytes);

// Appends to a file of its own. For one thread.
class TensorboardWriter {
 public:
  // By tag; a '/' in it makes a group.
  using Scalars = std::vector<std::pair<std::string, double>>;

  // Makes `directory`/events.out.tfevents.<seconds>.<host>.<process>. Errors as open(2) and write(2).
  static absl::StatusOr<std::unique_ptr<TensorboardWriter>> Create(const std::string& directory, absl::Time now);
  ~TensorboardWriter();
  TensorboardWriter(const TensorboardWriter&) = delete;
  TensorboardWriter& operator=(const TensorboardWriter&) = delete;

  // What is written is the system's when these return: it survives our death, and TensorBoard sees it at once. After
  // an error the file ends with the record before. RESOURCE_EXHAUSTED: disk full; others as write(2).
  absl::Status AddScalars(std::int64_t step, absl::Time now, const Scalars& scalars);
  // Markdown.
  absl::Status AddText(std::int64_t step, absl::Time now, const std::string& tag, const std::string& text);

  const std::string& path() const { return path_; }

 private:
  TensorboardWriter(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status Append(const std::string& event);

  const std::string path_;
  const int fd_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_TENSORBOARD_WRITER_H_
