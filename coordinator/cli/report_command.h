// `resbm report`: runs as one HTML file.
#ifndef RESBM_COORDINATOR_CLI_REPORT_COMMAND_H_
#define RESBM_COORDINATOR_CLI_REPORT_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/cli/options.h"

namespace resbm::coordinator {

struct ReportCommandOptions {
  std::vector<std::string> runs;  // directories
  std::string file;               // "" = report.html in the directory of one run, here for several
  std::string title;              // "" = the job's name, or how many runs
  OutputOptions output;
};

void AddTo(CLI::App* app, ReportCommandOptions* options);

// The exit code. Everything that went wrong has been said on stderr.
int Report(const ReportCommandOptions& options);

// report.html of a run that has just ended, into its directory. Errors of ReadReportRun and WriteFileAtomically.
absl::Status WriteRunReport(const std::string& run_directory);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_REPORT_COMMAND_H_
