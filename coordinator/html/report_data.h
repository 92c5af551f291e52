// What an HTML report draws, as one JSON object: figures, thinned curves, a piece of the timeline, the comparison.
#ifndef RESBM_COORDINATOR_HTML_REPORT_DATA_H_
#define RESBM_COORDINATOR_HTML_REPORT_DATA_H_

#include <optional>
#include <string>
#include <vector>

#include "coordinator/compare/run_record.h"
#include "coordinator/html/trace_record.h"

namespace resbm::coordinator {

struct ReportRun {
  RunRecord record;
  // Absent: the run has no trace.json.
  std::optional<TraceRecord> trace;
};

struct ReportOptions {
  std::string title;      // "" = the job's name, of several runs "N runs"
  std::string generated;  // RFC 3339; when the report is written
  std::string version;    // of the program that writes it
};

// {"title", "generated", "version", "runs": [...], "comparison"}. page/*.js reads it. What is not known is absent.
//   runs[]: "name", unlike the others'; "path", "job_name", "job" (text), "started", "version", "is_text", "arm" (index
//     into comparison.arms), "stages", "boundaries", "evaluations" (as summary.json has them), "figures"
//     (RunRecord::figures), "curves" {NAME: {"steps", "values"}}, "smoothed" {"window", "steps", "values"},
//     "skipped": [{"step", "reasons"}] with "skipped_steps" of them all, "spikes": steps,
//     "signals" {CUT: {NAME: curve}}, "step_seconds" (a histogram), "timeline", "links"
//   timeline: "stages", "traced": first and last step, "steps": [{"step", "start", "duration"}], "typical": a step,
//     "spans": [[stage, lane, category, name, step, micro batch, start, duration, bytes]], in microseconds
//   comparison: as `resbm compare --json`; of several runs only
// Curves have at most a few thousand points, so that a run of any length gives some hundred kilobytes. Invalid UTF-8 is
// replaced. `runs`: at least one.
std::string ReportData(const std::vector<ReportRun>& runs, const ReportOptions& options);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_HTML_REPORT_DATA_H_
