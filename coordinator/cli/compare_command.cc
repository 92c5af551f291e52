#include "coordinator/cli/compare_command.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coordinator/cli/exit_code.h"
#include "coordinator/compare/comparison_text.h"
#include "coordinator/report/atomic_file.h"
#include "coordinator/report/terminal.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

constexpr char kCommand[] = "compare";

// `seen`: directories, whatever they are called.
absl::StatusOr<RunRecord> ReadOnce(const std::string& path, std::set<std::string>* seen) {
  RESBM_ASSIGN_OR_RETURN(RunRecord run, ReadRun(path));
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::canonical(path, error);
  if (!seen->insert(error ? path : canonical.string()).second) {
    return absl::InvalidArgumentError(absl::StrFormat("%s is given twice; a run counts once", path));
  }
  return run;
}

// "r8=runs/a,runs/b"
absl::StatusOr<Arm> ReadArm(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(absl::StrFormat("--arm %s: expected NAME=DIR,DIR,...", text));
  }
  Arm arm;
  arm.name = text.substr(0, equals);
  std::set<std::string> seen;
  const std::vector<std::string> paths = absl::StrSplit(text.substr(equals + 1), ',', absl::SkipEmpty());
  for (const std::string& path : paths) {
    RESBM_ASSIGN_OR_RETURN(RunRecord run, ReadOnce(path, &seen));
    arm.runs.push_back(std::move(run));
  }
  if (arm.runs.empty()) return absl::InvalidArgumentError(absl::StrFormat("--arm %s: no directories", text));
  return arm;
}

absl::StatusOr<std::vector<Arm>> ReadArms(const CompareOptions& options) {
  std::vector<RunRecord> runs;
  std::set<std::string> seen;
  for (const std::string& path : options.runs) {
    RESBM_ASSIGN_OR_RETURN(RunRecord run, ReadOnce(path, &seen));
    runs.push_back(std::move(run));
  }
  std::vector<Arm> arms = GroupRuns(std::move(runs));
  for (const std::string& text : options.arms) {
    RESBM_ASSIGN_OR_RETURN(Arm arm, ReadArm(text));
    for (const Arm& other : arms) {
      if (other.name == arm.name) {
        return absl::InvalidArgumentError(absl::StrFormat("two arms are called \"%s\"; name them apart", arm.name));
      }
    }
    arms.push_back(std::move(arm));
  }
  if (arms.empty()) {
    return absl::InvalidArgumentError("nothing to compare: give run directories, or --arm NAME=DIR,DIR,...");
  }
  return arms;
}

}  // namespace

void AddTo(CLI::App* app, CompareOptions* options) {
  app->add_option("runs", options->runs,
                  "Run directories; those whose jobs differ in the seed only are one arm. The first is of the baseline")
      ->type_name("RUN");
  app->add_option("--arm", options->arms, "An arm by hand; may be repeated")->type_name("NAME=RUN,RUN,...")->take_all();
  app->add_option(
         "--gate", options->gates,
         absl::StrFormat("A limit for every arm but the first: %s; may be repeated", absl::StrJoin(GateNames(), ", ")))
      ->type_name("NAME=LIMIT")
      ->take_all();
  app->add_option("--csv", options->csv, "Also write every figure of every arm to a file")->type_name("FILE");
  AddTo(app, &options->output, "Print the comparison as JSON on stdout instead of tables");
  AddVerbose(app, &options->output, "Also every figure of summary.json");
  app->footer(
      "Examples:\n"
      "  resbm compare runs/identity-1 runs/r8-1 runs/r16-1\n"
      "  resbm compare --arm none=runs/a1,runs/a2,runs/a3 --arm r16=runs/b1,runs/b2,runs/b3 --gate top1_drop=0.5");
}

int CompareRunDirectories(const CompareOptions& options) {
  auto fail = [](const absl::Status& status) {
    PrintError(kCommand, status);
    return kExitUsage;
  };
  std::vector<Gate> gates;
  for (const std::string& text : options.gates) {
    const auto gate = ParseGate(text);
    if (!gate.ok()) return fail(gate.status());
    gates.push_back(*gate);
  }
  const auto arms = ReadArms(options);
  if (!arms.ok()) return fail(arms.status());
  if (!gates.empty() && arms->size() < 2) {
    return fail(
        absl::InvalidArgumentError("a gate needs two arms, the first being the baseline; these runs are one arm"));
  }
  const Comparison comparison = Compare(*arms);
  const std::vector<GateResult> results = CheckGates(comparison, gates);
  if (!options.csv.empty()) {
    const absl::Status written = WriteFileAtomically(options.csv, ComparisonCsv(comparison));
    if (!written.ok()) return fail(written);
  }
  if (options.output.json) {
    std::cout << ComparisonJson(comparison, results) << std::flush;
  } else {
    std::cout << FormatComparison(comparison, results, options.output.verbose,
                                  DetectTerminal(STDOUT_FILENO, options.output.no_color))
              << std::flush;
  }
  bool passed = true;
  for (const GateResult& result : results) {
    if (result.passed) continue;
    passed = false;
    PrintError(kCommand, absl::FailedPreconditionError("gate failed: " + result.text));
  }
  return passed ? kExitOk : kExitCheckFailed;
}

}  // namespace resbm::coordinator
