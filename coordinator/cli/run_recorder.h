// Writes down a run for those who look at it with tools of their own: trace.json for Perfetto, an event file for
// TensorBoard.
#ifndef RESBM_COORDINATOR_CLI_RUN_RECORDER_H_
#define RESBM_COORDINATOR_CLI_RUN_RECORDER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/report/tensorboard_writer.h"
#include "coordinator/report/trace_recorder.h"
#include "coordinator/run/fleet.h"
#include "coordinator/run/run_driver.h"
#include "coordinator/run/run_setup.h"

namespace resbm::coordinator {

// For one thread. Files are made with the first step. One that cannot be written is given up with a note; the run
// goes on.
class RunRecorder {
 public:
  struct Options {
    std::string directory;
    std::string trace_path;
    std::string job_text;  // shown beside the curves
    std::function<void(const std::string& line)> note;
  };

  // `setup` and `fleet` outlive it.
  RunRecorder(const RunSetup& setup, Fleet* fleet, Options options);

  void OnStep(const StepReport& report);
  void OnEvaluation(const EvaluationReport& report);
  // After the last event, while the stages can still be asked for their clocks.
  void Finish();

 private:
  TensorboardWriter::Scalars ScalarsOf(const StepReport& report) const;
  void Board(const std::function<absl::Status()>& write);
  void GiveUp(const char* what, const absl::Status& status);

  const RunSetup& setup_;
  const Options options_;
  TraceRecorder trace_;
  std::unique_ptr<TensorboardWriter> board_;
  bool board_failed_ = false;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_RUN_RECORDER_H_
