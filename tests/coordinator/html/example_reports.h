// Runs with everything a report can show, small and literal, for tests.
#ifndef RESBM_TESTS_COORDINATOR_HTML_EXAMPLE_REPORTS_H_
#define RESBM_TESTS_COORDINATOR_HTML_EXAMPLE_REPORTS_H_

#include <string>

#include "coordinator/compare/run_record.h"
#include "coordinator/html/report_data.h"

namespace resbm::coordinator {

struct ExampleReport {
  std::string path = "runs/a-1";
  std::string name = "a";
  int seed = 1;
  int ratio = 4;
  int steps = 60;
  bool is_text = false;
  bool has_trace = true;
  bool has_signals = true;
  bool has_skipped = true;    // steps 7 and 8
  bool is_one_stage = false;  // without cuts
  bool is_old = false;        // of a version that wrote neither evaluations, nor versions, nor signals, nor step times
};

// The files of a run directory.
std::string ExampleReportJob(const ExampleReport& example);
std::string ExampleReportSummary(const ExampleReport& example);
std::string ExampleReportMetrics(const ExampleReport& example);
// `stages` stages, 4 micro-batches, steps 1 to `steps` of 100 ms each, but step 1 of 300 ms and step 3 of 90 ms. In
// each step and stage: forward and backward of each micro-batch, sends and receives of 784 bytes, a wait, a commit.
std::string ExampleTrace(int stages, int steps);

ReportRun MakeExampleReport(const ExampleReport& example);

}  // namespace resbm::coordinator

#endif  // RESBM_TESTS_COORDINATOR_HTML_EXAMPLE_REPORTS_H_
