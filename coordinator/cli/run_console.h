// What a person sees of a run, and what stays of it: progress on stderr, rows in metrics.jsonl, figures for
// the summary.
#ifndef RESBM_COORDINATOR_CLI_RUN_CONSOLE_H_
#define RESBM_COORDINATOR_CLI_RUN_CONSOLE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/cli/options.h"
#include "coordinator/compare/recent_losses.h"
#include "coordinator/report/metrics_writer.h"
#include "coordinator/report/progress.h"
#include "coordinator/report/run_statistics.h"
#include "coordinator/report/summary.h"
#include "coordinator/run/fleet.h"
#include "coordinator/run/run_host.h"
#include "coordinator/run/run_setup.h"

namespace resbm::coordinator {

// "loss 0.4312, top-1 84.10 % on 10000 samples"; of text with bits a byte and perplexity, on bytes.
std::string DescribeEvaluation(const EvaluationReport& report, bool is_text);

// For one thread.
class RunConsole : public RunObserver {
 public:
  // `metrics_path` empty: no rows are written. `setup` outlives the console. Errors as MetricsWriter::Open.
  static absl::StatusOr<std::unique_ptr<RunConsole>> Create(const RunSetup& setup, Fleet* fleet,
                                                            const OutputOptions& output,
                                                            const std::string& metrics_path);

  absl::Status OnStep(const StepReport& report) override;
  absl::Status OnEvaluation(const EvaluationReport& report) override;
  void OnProgress(int stage, const v1::Progress& progress) override;

  // A line on stderr, unless quiet.
  void Note(const std::string& line) { progress_->Note(line); }
  // Leaves the progress line. Once, after the last event.
  void Finish();
  Summary Summarize() const { return statistics_->Summarize(); }

 private:
  RunConsole() = default;

  bool verbose_ = false;
  bool is_text_ = false;
  std::int64_t units_ = 0;  // samples, or of text tokens
  std::unique_ptr<RunStatistics> statistics_;
  std::unique_ptr<MetricsWriter> metrics_;
  RecentLosses recent_;
  std::unique_ptr<Progress> progress_;
};

// The summary on stdout: JSON, or the table.
void PrintSummary(const Summary& summary, const OutputOptions& output);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_RUN_CONSOLE_H_
