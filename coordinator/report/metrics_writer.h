// metrics.jsonl: one JSON object a committed step.
#ifndef RESBM_COORDINATOR_REPORT_METRICS_WRITER_H_
#define RESBM_COORDINATOR_REPORT_METRICS_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace resbm::coordinator {

struct MetricsRow {
  std::int64_t step = 0;  // from 1
  double loss = 0;        // mean of the step; null in the file when not finite
  std::int64_t samples = 0;
  // Bytes of text that are predicted; absent from the file for images.
  std::optional<std::int64_t> tokens;
  double step_seconds = 0;
  double learning_rate = 0;
  bool skipped = false;
  // The fence, "<epoch>.<generation>" in the file.
  std::uint64_t fence_epoch = 0;
  std::uint64_t fence_generation = 0;
  // Of the data, from 0.
  std::int64_t epoch = 0;
  // Norm of the mean gradient before clipping.
  std::optional<double> grad_norm;
  // Of the curve so far, as loss per 100 steps; absent from the file in the first steps.
  std::optional<double> loss_slope;
  // In the file only where it is true.
  bool loss_spike = false;
  // Of each cut point, by name (v1::Signal says which); absent from the file when empty, null where not finite.
  std::map<std::string, std::map<std::string, double>> signals;
  // Why it was skipped; absent from the file when empty.
  std::vector<std::string> non_finite;
};

// One line, with its line end.
std::string ToJsonLine(const MetricsRow& row);

// Appends to a file. For one thread.
class MetricsWriter {
 public:
  // Makes the file if it is not there. Errors as open(2).
  static absl::StatusOr<std::unique_ptr<MetricsWriter>> Open(const std::string& path);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  // The row is the system's when it returns: it survives our death (not a power cut). After an error the
  // file ends with the row before. RESOURCE_EXHAUSTED: disk full; others as write(2).
  absl::Status Write(const MetricsRow& row);
  // fsync: rows survive a power cut too. Errors as fsync(2).
  absl::Status Sync();

 private:
  MetricsWriter(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_METRICS_WRITER_H_
