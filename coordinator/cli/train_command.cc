#include "coordinator/cli/train_command.h"

#include <iostream>
#include <utility>

#include "coordinator/cli/exit_code.h"
#include "coordinator/cli/report_command.h"
#include "coordinator/cli/run_command.h"
#include "coordinator/cli/run_console.h"
#include "coordinator/cli/training.h"
#include "coordinator/job/validate.h"
#include "proto/metrics/endpoint.h"

namespace resbm::coordinator {
namespace {

constexpr char kCommand[] = "train";

int Fail(const absl::Status& status, int code) {
  PrintError(kCommand, status);
  return code;
}

}  // namespace

void AddTo(CLI::App* app, TrainOptions* options) {
  AddTo(app, &options->job, /*required=*/true);
  AddTo(app, &options->fleet);
  app->add_option("--run-dir", options->run.run_dir, "Where the run goes; must not exist or be empty")->type_name("DIR");
  app->add_option("--runs", options->run.runs, "Without --run-dir: DIR/<job name>-<n> (default: runs)")->type_name("DIR");
  app->add_flag("--resume", options->resume, "Go on with the run in --run-dir (not implemented yet)");
  app->add_option("--metrics-listen", options->metrics_listen,
                  "Where Prometheus reads /metrics while it trains; port 0 takes a free one. Not given: nowhere")
      ->type_name("HOST:PORT");
  app->add_flag("--insecure", options->insecure, "Allow --metrics-listen where other machines read it, without encryption");
  AddTo(app, &options->output, "Print the summary as JSON on stdout instead of tables");
  AddVerbose(app, &options->output, "Say which stage waits for what");
  app->footer(
      "Examples:\n"
      "  resbm train --job deploy/jobs/fashion_mnist.textproto\n"
      "  resbm train --job job.textproto --stages host-a:50051,host-b:50051 --set boundary.ratio=8");
}

int Train(const TrainOptions& options) {
  if (options.resume) {
    return Fail(absl::UnimplementedError("--resume is not implemented yet; start a new run"), kExitUsage);
  }
  if (auto status = Check(options.fleet); !status.ok()) return Fail(status, kExitUsage);
  if (!options.metrics_listen.empty()) {
    const absl::Status status = metrics::CheckAddress("--metrics-listen", options.metrics_listen, options.insecure);
    if (!status.ok()) return Fail(status, kExitUsage);
  }
  SignalledRun signals;  // before any thread

  auto loaded = LoadValidJob(options.job.job, options.job.set, options.fleet.requested());
  if (!loaded.ok()) return Fail(loaded.status(), kExitUsage);
  TrainingRequest request;
  request.command = kCommand;
  request.job = std::move(loaded->job);
  request.fleet = options.fleet;
  request.output = options.output;
  request.where = options.run;
  request.metrics_listen = options.metrics_listen;
  const TrainingResult result = RunTraining(request, &signals);
  if (result.saved) {
    // It can be made again (resbm report): a run is no worse for want of it.
    const absl::Status reported = WriteRunReport(result.directory);
    if (!reported.ok()) std::cerr << "resbm train: warning: no report.html: " << reported.message() << std::endl;
    PrintSummary(result.summary, options.output);
    if (!options.output.quiet) std::cerr << "weights, metrics, summary and report: " << result.directory << std::endl;
  }
  return result.code;
}

}  // namespace resbm::coordinator
