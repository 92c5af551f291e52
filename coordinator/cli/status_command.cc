#include "coordinator/cli/status_command.h"

#include <unistd.h>

#include <iostream>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coordinator/cli/exit_code.h"
#include "coordinator/report/terminal.h"
#include "coordinator/status/run_info.h"
#include "coordinator/status/stage_status.h"
#include "coordinator/status/status_text.h"
#include "proto/base/event.h"
#include "proto/base/signal_watcher.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

constexpr char kCommand[] = "status";
constexpr char kDrawOver[] = "\x1b[H\x1b[J";  // to the top left, and nothing below

absl::StatusOr<Status> Look(const StatusOptions& options) {
  Status status;
  std::vector<std::string> addresses = options.stages;
  if (!options.run_dir.empty()) {
    RESBM_ASSIGN_OR_RETURN(status.run, ReadRunInfo(options.run_dir));
    // Its stage servers are gone, or work for others.
    if (status.run->ended()) return status;
    addresses = status.run->stages.addresses;
  }
  status.stages = DescribeStages(addresses, absl::Seconds(options.timeout_seconds));
  return status;
}

int Fail(const absl::Status& status) {
  PrintError(kCommand, status);
  return kExitUsage;
}

}  // namespace

void AddTo(CLI::App* app, StatusOptions* options) {
  app->add_option("run_dir", options->run_dir, "Of `resbm train`: the stage servers are those of the run")
      ->type_name("RUN_DIR");
  app->add_option("--stages", options->stages, "Stage servers, instead of a run directory")
      ->type_name("HOST:PORT,...")
      ->delimiter(',');
  app->add_flag("--watch{2}", options->watch,
                "Look again and again, every 2 seconds or --watch=SECONDS; Ctrl-C ends it (exit code 130)")
      ->type_name("[SECONDS]");
  app->add_option("--timeout", options->timeout_seconds, "How long to wait for an answer")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  AddTo(app, &options->output, "Print JSON: an object, with --watch one a line");
  app->footer(
      "Exit code 3: a stage server does not answer; the others are shown all the same.\n"
      "Examples:\n"
      "  resbm status runs/fashion-mnist-r16-1 --watch\n"
      "  resbm status --stages host-a:50051,host-b:50051 --json");
}

int ShowStatus(const StatusOptions& options) {
  if (options.run_dir.empty() == options.stages.empty()) {
    return Fail(absl::InvalidArgumentError("give a run directory or --stages, one of them"));
  }
  FleetOptions fleet;
  fleet.stages = options.stages;
  if (const absl::Status status = Check(fleet); !status.ok()) return Fail(status);
  const bool watch = !options.watch.empty();
  double seconds = 0;
  if (watch && !(absl::SimpleAtod(options.watch, &seconds) && seconds >= 0.1 && seconds <= 3600)) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("--watch=", options.watch, ": give a number of seconds from 0.1 to 3600")));
  }
  Event interruption;  // set by a signal, waited for between two looks
  std::unique_ptr<SignalWatcher> signals;
  if (watch) {
    // Before any thread. Twice: also an answer that is waited for is given up.
    signals = std::make_unique<SignalWatcher>([&](int count) {
      if (count > 1) _exit(kExitInterrupted);
      interruption.Set();
    });
  }
  const Terminal terminal = DetectTerminal(STDOUT_FILENO, options.output.no_color);
  for (bool first = true;; first = false) {
    const absl::StatusOr<Status> status = Look(options);
    if (!status.ok()) return Fail(status.status());
    const std::string text = options.output.json ? StatusToJson(*status) : FormatStatus(*status, terminal);
    if (watch && !options.output.json) std::cout << (terminal.interactive ? kDrawOver : first ? "" : "\n");
    std::cout << text << std::flush;
    // Whoever read them is gone.
    if (!std::cout) return kExitOk;
    const bool ended = status->run.has_value() && status->run->ended();
    if (!watch || ended) return status->incomplete() ? kExitPeer : kExitOk;
    if (interruption.WaitFor(absl::Seconds(seconds))) return kExitInterrupted;
  }
}

}  // namespace resbm::coordinator
