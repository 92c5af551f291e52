// summary.json: what came out of a run, in figures. Other tools rely on the names. Seconds and bytes of a
// step are means over the steps of the run.
#ifndef RESBM_COORDINATOR_REPORT_SUMMARY_H_
#define RESBM_COORDINATOR_REPORT_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace resbm::coordinator {

// What an activation would take before the encoder: samples x elements x 2 or 4.
struct UncompressedBytes {
  double fp16 = 0;
  double fp32 = 0;

  friend bool operator==(const UncompressedBytes&, const UncompressedBytes&) = default;
};

// One direction of one cut.
struct BoundarySummary {
  std::string cut_point;  // the layer before it
  // "activations" (towards the output) or "gradients" (back).
  std::string direction;
  std::string codec;   // "fp16", "bf16", "fp32", "int8", "int4"; of several tensors "fp16+int16"
  std::int64_t ratio = 1;  // r: C / channels that cross, or values / values that are kept
  // Bytes a step.
  double payload_bytes = 0;
  double metadata_bytes = 0;  // message bytes less payload, and 5 a message for gRPC's prefix
  UncompressedBytes uncompressed_bytes;

  friend bool operator==(const BoundarySummary&, const BoundarySummary&) = default;
};

struct PeakMemory {
  std::int64_t total = 0;  // bytes; the parts add up to it
  std::int64_t weights = 0;
  std::int64_t optimizer = 0;
  std::int64_t activations = 0;
  std::int64_t buffers = 0;  // gradients, inbox, what is kept for sending again

  friend bool operator==(const PeakMemory&, const PeakMemory&) = default;
};

// What ran a stage, as it describes itself; empty where it is not known. Bit-equal results depend on it.
struct ServerSummary {
  std::string version;
  std::string device_name;
  std::string libtorch_version;
  std::string cpu_capability;  // instruction set that LibTorch uses

  friend bool operator==(const ServerSummary&, const ServerSummary&) = default;
};

struct StageSummary {
  std::int64_t stage = 0;
  std::string device;
  std::int64_t parameters = 0;
  // A step.
  double forward_seconds = 0;
  double backward_seconds = 0;
  double waiting_up_seconds = 0;    // for want of a tensor from above
  double waiting_down_seconds = 0;  // from below
  double commit_seconds = 0;        // the optimizer's
  // Share of wall time in forward or backward.
  double utilization = 0;
  PeakMemory peak_memory;
  std::optional<double> gpu_utilization;  // CUDA only
  ServerSummary server = {};

  friend bool operator==(const StageSummary&, const StageSummary&) = default;
};

// The test set, evaluated in the course of a run.
struct EvaluationSummary {
  std::int64_t step = 0;  // after it; 0 = before the first
  double loss = 0;        // mean over the test set (of text: a byte)
  std::optional<double> top1;  // fraction
  std::int64_t samples = 0;    // of text: bytes that are predicted
  double seconds = 0;

  friend bool operator==(const EvaluationSummary&, const EvaluationSummary&) = default;
};

// Absent values are null in the file: not known, or not measured by this version.
struct Summary {
  std::string name;
  std::string started;  // RFC 3339, UTC; empty: not known
  std::string version;  // of the coordinator
  std::int64_t steps = 0;
  std::int64_t skipped_steps = 0;
  std::int64_t samples = 0;       // taken, over all steps
  double training_seconds = 0;    // all steps, without evaluations
  std::optional<double> final_loss;       // mean of the last step that was not skipped
  // Fraction of the test set (of text: of its bytes) that is predicted right, after the last step.
  std::optional<double> top1;
  std::optional<double> validation_loss;  // mean over the test set (of text: a byte)
  // Of text, from validation_loss: its exponential, and the loss / ln 2.
  std::optional<double> perplexity;
  std::optional<double> bits_per_byte;
  std::optional<double> samples_per_second;
  std::optional<double> tokens_per_second;  // of text: bytes that are predicted
  std::optional<double> step_seconds_median;
  std::optional<double> epoch_seconds;         // mean over complete epochs, without evaluations
  std::optional<double> planned_step_seconds;  // what the planner expected
  std::vector<BoundarySummary> boundaries;     // by cut, then activations and gradients
  // Shares of the stages' wall time (stages x training_seconds).
  std::optional<double> communication_share_exposed;  // waiting for a link
  std::optional<double> communication_share_total;    // transfer time
  std::optional<double> bubble_share;                 // idle by the schedule alone
  std::vector<StageSummary> stages;
  std::vector<EvaluationSummary> evaluations;  // in the order of their steps

  friend bool operator==(const Summary&, const Summary&) = default;
};

// JSON with line breaks. Numbers that are not finite are written as null.
std::string ToJson(const Summary& summary);

// Any text is safe. Fields that it does not know are skipped, missing and null ones are absent (0 where
// the struct cannot say absent). INVALID_ARGUMENT: not JSON, or a value of another type (names the field).
absl::StatusOr<Summary> ParseSummary(absl::string_view json);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_SUMMARY_H_
