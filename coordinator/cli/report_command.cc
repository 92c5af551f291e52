#include "coordinator/cli/report_command.h"

#include <iostream>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coordinator/cli/exit_code.h"
#include "coordinator/html/report.h"
#include "coordinator/report/atomic_file.h"
#include "coordinator/report/run_directory.h"
#include "proto/base/status.h"
#include "proto/base/version.h"

namespace resbm::coordinator {
namespace {

constexpr char kCommand[] = "report";

absl::Status Write(const std::vector<std::string>& paths, const std::string& title, std::string output) {
  std::vector<ReportRun> runs;
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    RESBM_ASSIGN_OR_RETURN(ReportRun run, ReadReportRun(path));
    if (!seen.insert(run.record.path).second) {
      return absl::InvalidArgumentError(absl::StrFormat("%s is given twice; a run counts once", path));
    }
    runs.push_back(std::move(run));
  }
  ReportOptions options;
  options.title = title;
  options.generated = absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
  options.version = kVersion;
  return WriteFileAtomically(output, MakeReport(runs, options));
}

std::string DefaultOutput(const std::vector<std::string>& runs) {
  return runs.size() == 1 ? absl::StrCat(runs.front(), "/", kReportFile) : kReportFile;
}

}  // namespace

void AddTo(CLI::App* app, ReportCommandOptions* options) {
  app->add_option("runs", options->runs, "Run directories; of several the first is what the others are compared with")
      ->type_name("RUN")
      ->required();
  app->add_option("--output", options->file,
                  "Where the report goes (default: report.html, in the directory of one run, here for several)")
      ->type_name("FILE");
  app->add_option("--title", options->title, "Heading of the report (default: the job's name)")->type_name("TEXT");
  AddTo(app, &options->output, "Print the name of the file as JSON on stdout");
  app->footer(
      "Examples:\n"
      "  resbm report runs/fashion-mnist-r16-1\n"
      "  resbm report runs/identity-1 runs/r16-1 --output compared.html --title \"r=16 against uncompressed\"");
}

int Report(const ReportCommandOptions& options) {
  const std::string file = options.file.empty() ? DefaultOutput(options.runs) : options.file;
  const absl::Status written = Write(options.runs, options.title, file);
  if (!written.ok()) {
    PrintError(kCommand, written);
    return kExitUsage;
  }
  if (options.output.json) {
    std::cout << nlohmann::ordered_json{{"report", file}, {"runs", options.runs}}.dump(2) << std::endl;
  } else if (!options.output.quiet) {
    std::cerr << "report: " << file << std::endl;
  }
  return kExitOk;
}

absl::Status WriteRunReport(const std::string& run_directory) {
  return Write({run_directory}, "", DefaultOutput({run_directory}));
}

}  // namespace resbm::coordinator
