#include "coordinator/html/report.h"

#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/html/page.h"
#include "coordinator/report/run_directory.h"
#include "nlohmann/json.hpp"
#include "proto/base/status.h"

namespace resbm::coordinator {

absl::StatusOr<ReportRun> ReadReportRun(const std::string& path) {
  ReportRun run;
  RESBM_ASSIGN_OR_RETURN(run.record, ReadRun(path));
  const std::string trace_path = absl::StrCat(run.record.path, "/", kTraceFile);
  std::ifstream trace(trace_path, std::ios::binary);
  if (!trace) return run;
  auto parsed = ParseTrace(trace);
  if (!parsed.ok()) {
    return Annotate(parsed.status(), absl::StrCat(trace_path, " (move it away to have a report without a timeline)"));
  }
  run.trace = *std::move(parsed);
  return run;
}

std::string MakeReport(const std::vector<ReportRun>& runs, const ReportOptions& options) {
  const std::string data = ReportData(runs, options);
  return HtmlPage(nlohmann::json::parse(data)["title"].get<std::string>(), data);
}

}  // namespace resbm::coordinator
