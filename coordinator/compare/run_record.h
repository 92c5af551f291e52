// A finished run as its directory tells it.
#ifndef RESBM_COORDINATOR_COMPARE_RUN_RECORD_H_
#define RESBM_COORDINATOR_COMPARE_RUN_RECORD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/compare/curve.h"
#include "coordinator/report/summary.h"
#include "proto/resbm/v1/job.pb.h"

namespace resbm::coordinator {

// Figures that are not in summary.json but follow from it, the job and metrics.jsonl.
inline constexpr char kBytesPerStep[] = "bytes_per_step";            // all cuts, both directions, with metadata
inline constexpr char kFp16BytesPerStep[] = "fp16_bytes_per_step";   // uncompressed, for the same cuts
inline constexpr char kPlannedBytes[] = "planned_bytes_per_sample";  // at all cut points, cut or not, no metadata
inline constexpr char kPlannedFp16Bytes[] = "planned_fp16_bytes_per_sample";
inline constexpr char kParameters[] = "parameters";         // of all stages
inline constexpr char kPeakMemory[] = "peak_memory_bytes";  // of the stage with the most
inline constexpr char kUtilization[] = "utilization";       // mean of the stages
inline constexpr char kLossSlope[] = "loss_slope";          // per 100 steps, second half
inline constexpr char kLossSpikes[] = "loss_spikes";        // how many

// Of one step, as metrics.jsonl has it.
struct MetricsLine {
  std::int64_t step = 0;
  double loss = 0;  // NaN where the file has null
  std::optional<double> grad_norm;
  std::optional<double> step_seconds;
  std::optional<double> learning_rate;
  bool skipped = false;
  std::vector<std::string> non_finite;  // why it was skipped
  // By cut point, then by name; those that are finite.
  std::map<std::string, std::map<std::string, double>> signals;
};

struct RunRecord {
  std::string path;
  v1::Job job;
  std::string job_text;  // as the file has it
  Summary summary;
  int stages = 1;
  std::vector<std::string> devices;  // by stage
  // Every number of summary.json by its path, "stages.0.peak_memory_bytes.total",
  // "boundaries.group0.1.activations.payload_bytes", and those above. What is null is not there.
  std::map<std::string, double> figures;
  std::vector<MetricsLine> lines;
  std::vector<CurvePoint> curve;
  // At a spike: the steps.
  std::vector<std::int64_t> spikes;

  std::optional<double> figure(absl::string_view name) const;
};

// NOT_FOUND: no such folder, or job.textproto, summary.json or metrics.jsonl is missing (a run that did not
// end). INVALID_ARGUMENT: one of them cannot be read (names the file and what is wrong).
absl::StatusOr<RunRecord> ReadRun(const std::string& path);

// The same from the files' contents. `path` stands in messages.
absl::StatusOr<RunRecord> MakeRunRecord(const std::string& path, const std::string& job, absl::string_view summary,
                                        absl::string_view metrics);

// Any text is safe. A last line without its end is left out: it was being written. INVALID_ARGUMENT: line and
// what is wrong with it.
absl::StatusOr<std::vector<MetricsLine>> ParseMetrics(absl::string_view text);

// A file as it is. NOT_FOUND: no such file, or unreadable.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_COMPARE_RUN_RECORD_H_
