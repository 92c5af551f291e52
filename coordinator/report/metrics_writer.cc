#include "coordinator/report/metrics_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/report/atomic_file.h"
#include "nlohmann/json.hpp"

namespace resbm::coordinator {

std::string ToJsonLine(const MetricsRow& row) {
  // A NaN or infinite number is written as null: JSON has none.
  nlohmann::ordered_json json = {
      {"step", row.step},
      {"loss", row.loss},
      {"samples", row.samples},
      {"step_seconds", row.step_seconds},
      {"learning_rate", row.learning_rate},
      {"skipped", row.skipped},
      {"fence", absl::StrCat(row.fence_epoch, ".", row.fence_generation)},
      {"epoch", row.epoch},
  };
  if (row.tokens.has_value()) json["tokens"] = *row.tokens;
  if (row.grad_norm.has_value()) json["grad_norm"] = *row.grad_norm;
  if (row.loss_slope.has_value()) json["loss_slope"] = *row.loss_slope;
  if (row.loss_spike) json["loss_spike"] = true;
  if (!row.signals.empty()) json["signals"] = row.signals;
  if (!row.non_finite.empty()) json["non_finite"] = row.non_finite;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

absl::StatusOr<std::unique_ptr<MetricsWriter>> MetricsWriter::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  return std::unique_ptr<MetricsWriter>(new MetricsWriter(path, fd));
}

MetricsWriter::~MetricsWriter() { close(fd_); }

absl::Status MetricsWriter::Write(const MetricsRow& row) {
  const off_t before = lseek(fd_, 0, SEEK_END);
  const absl::Status status = WriteAll(fd_, ToJsonLine(row), path_);
  // Half a row would make the next one unreadable too. Of no use on what is not a file.
  if (!status.ok() && before >= 0 && ftruncate(fd_, before) != 0) return status;
  return status;
}

absl::Status MetricsWriter::Sync() {
  if (fsync(fd_) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, path_);
}

}  // namespace resbm::coordinator
