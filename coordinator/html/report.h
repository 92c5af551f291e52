// `resbm report`: from run directories to one HTML file.
#ifndef RESBM_COORDINATOR_HTML_REPORT_H_
#define RESBM_COORDINATOR_HTML_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/html/report_data.h"

namespace resbm::coordinator {

// A run directory's files; trace.json where it is there. Errors of ReadRun. INVALID_ARGUMENT: trace.json is damaged.
absl::StatusOr<ReportRun> ReadReportRun(const std::string& path);

// The page. `runs`: at least one.
std::string MakeReport(const std::vector<ReportRun>& runs, const ReportOptions& options);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_HTML_REPORT_H_
