#include "coordinator/cli/train_command.h"

#include <iostream>
#include <memory>

#include <google/protobuf/text_format.h>

#include "absl/strings/str_format.h"
#include "coordinator/cli/exit_code.h"
#include "coordinator/cli/run_command.h"
#include "coordinator/cli/run_console.h"
#include "coordinator/job/validate.h"
#include "coordinator/report/run_directory.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

constexpr char kCommand[] = "train";

int Fail(const absl::Status& status, int code) {
  PrintError(kCommand, status);
  return code;
}

// Weights and figures into the run directory. Tried as a whole: the figures even if the weights fail.
absl::Status Save(RunHost* host, RunDirectory* directory, const Summary& summary) {
  const auto weights = host->CollectWeights();
  absl::Status status = weights.ok() ? directory->Write(kModelFile, *weights) : weights.status();
  status.Update(directory->Write(kSummaryFile, ToJson(summary)));
  return status;
}

}  // namespace

void AddTo(CLI::App* app, TrainOptions* options) {
  AddTo(app, &options->job, /*required=*/true);
  AddTo(app, &options->fleet);
  app->add_option("--run-dir", options->run.run_dir, "Where the run goes; must not exist or be empty")->type_name("DIR");
  app->add_option("--runs", options->run.runs, "Without --run-dir: DIR/<job name>-<n> (default: runs)")->type_name("DIR");
  app->add_flag("--resume", options->resume, "Go on with the run in --run-dir (not implemented yet)");
  AddTo(app, &options->output);
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
  SignalledRun signals;  // before any thread

  const auto loaded = LoadValidJob(options.job.job, options.job.set, options.fleet.requested());
  if (!loaded.ok()) return Fail(loaded.status(), kExitUsage);
  const v1::Job& job = loaded->job;
  const std::vector<std::string> addresses = StageAddresses(options.fleet, job);
  auto setup = SetUpRun(job, RunKind::kTrain, options.fleet.requested(), NewJobId(job.name()));
  if (!setup.ok()) return Fail(setup.status(), kExitUsage);

  // Remote stage servers first: a run that none can serve leaves nothing behind.
  std::unique_ptr<Fleet> fleet;
  if (!addresses.empty()) {
    auto reached = MakeFleet(options.fleet, *setup, addresses, "");
    if (!reached.ok()) return Fail(reached.status(), ExitCodeOfFleet(reached.status()));
    fleet = *std::move(reached);
  }
  RunDirectory::Options where;
  where.path = options.run.run_dir;
  where.root = options.run.runs;
  where.name = job.name();
  auto directory = RunDirectory::Create(where);
  if (!directory.ok()) return Fail(directory.status(), kExitUsage);
  std::string text;
  google::protobuf::TextFormat::PrintToString(job, &text);
  auto epoch = (*directory)->NextEpoch();
  absl::Status written = (*directory)->Write(kJobFile, text);
  written.Update(epoch.status());
  if (!written.ok()) {
    (*directory)->Abandon();
    return Fail(written, kExitUsage);
  }
  setup->plan.coordinator_epoch = *epoch;
  if (fleet == nullptr) {
    auto started = MakeFleet(options.fleet, *setup, addresses, (*directory)->path());
    if (!started.ok()) {
      (*directory)->Abandon();
      return Fail(started.status(), ExitCodeOfFleet(started.status()));
    }
    fleet = *std::move(started);
  }

  auto console = RunConsole::Create(*setup, fleet.get(), options.output, (*directory)->File(kMetricsFile));
  if (!console.ok()) return Fail(console.status(), kExitUsage);
  (*console)->Note(absl::StrFormat("training \"%s\": %d stages, %d steps of %d samples in %d micro-batches, into %s",
                                   job.name(), setup->stages(), setup->plan.total_steps, job.batch().samples(),
                                   job.batch().micro_batches(), (*directory)->path()));
  RunHost host(&*setup, fleet.get(), {}, console->get());
  const absl::Status result = signals.Run(&host);
  (*console)->Finish();
  const Summary summary = (*console)->Summarize();
  const bool trained = host.driver().committed_steps() > 0;

  absl::Status saved;
  if (result.ok() && trained) saved = Save(&host, directory->get(), summary);
  host.Release();
  if (!result.ok()) {
    if (trained) {
      saved = (*directory)->Write(kSummaryFile, ToJson(summary));
    } else if (!fleet->local()) {
      (*directory)->Abandon();
    }
    PrintError(kCommand, result);
    if (trained) {
      std::cerr << "resbm train: " << host.driver().committed_steps()
                << " steps were committed; their figures are in " << (*directory)->path() << std::endl;
    }
    return signals.interrupted() ? kExitInterrupted : kExitPeer;
  }
  if (!saved.ok()) return Fail(Annotate(saved, "the run is not saved"), kExitUsage);
  if (trained) {
    PrintSummary(summary, options.output);
    if (!options.output.quiet) std::cerr << "weights, metrics and summary: " << (*directory)->path() << std::endl;
  }
  return signals.interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace resbm::coordinator
