#include "coordinator/cli/training.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include <google/protobuf/text_format.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/cli/run_console.h"
#include "coordinator/cli/run_recorder.h"
#include "coordinator/metrics/run_families.h"
#include "coordinator/metrics/run_metrics.h"
#include "coordinator/report/run_directory.h"
#include "coordinator/report/stages_file.h"
#include "coordinator/run/group_check.h"
#include "coordinator/run/init_from.h"
#include "coordinator/run/run_host.h"
#include "proto/base/status.h"
#include "proto/metrics/endpoint.h"
#include "proto/metrics/process_metrics.h"

namespace resbm::coordinator {
namespace {

// Weights and figures into the run directory. Tried as a whole: the figures even if the weights fail.
absl::Status Save(RunHost* host, RunDirectory* directory, const Summary& summary) {
  const auto weights = host->CollectWeights();
  absl::Status status = weights.ok() ? directory->Write(kModelFile, *weights) : weights.status();
  status.Update(directory->Write(kSummaryFile, ToJson(summary)));
  return status;
}

// Null where nobody asked for it.
absl::StatusOr<std::unique_ptr<metrics::Endpoint>> ServeMetrics(const std::string& address, const RunMetrics* run) {
  if (address.empty()) return nullptr;
  auto endpoint = metrics::Endpoint::Listen(address, [run] {
    std::vector<prometheus::MetricFamily> families = RunFamilies(run->Snapshot());
    for (prometheus::MetricFamily& family : metrics::ProcessFamilies()) families.push_back(std::move(family));
    return families;
  });
  if (!endpoint.ok()) return Annotate(endpoint.status(), "--metrics-listen");
  return endpoint;
}

// For `resbm status`.
std::string StagesJson(const RunSetup& setup, Fleet* fleet) {
  StagesFile stages;
  stages.job_id = setup.plan.job_id;
  stages.total_steps = setup.plan.total_steps;
  for (int s = 0; s < fleet->size(); ++s) stages.addresses.push_back(fleet->stage(s).address());
  return ToJson(stages);
}

// Of local stage servers.
void RemoveLogs(const std::string& run_directory) {
  std::error_code ignored;
  std::vector<std::filesystem::path> logs;
  for (const auto& file : std::filesystem::directory_iterator(run_directory, ignored)) {
    if (file.path().extension() == ".log") logs.push_back(file.path());
  }
  for (const std::filesystem::path& log : logs) std::filesystem::remove(log, ignored);
}

// Hands everything to the console and the recorder, and lets the request's callback end the run.
class StoppingObserver : public RunObserver {
 public:
  StoppingObserver(RunConsole* console, RunRecorder* recorder, RunMetrics* metrics,
                   const std::function<bool(const StepReport&)>& on_step)
      : console_(console), recorder_(recorder), metrics_(metrics), on_step_(on_step) {}

  void set_host(RunHost* host) { host_ = host; }
  bool stopped() const { return stopped_; }

  absl::Status OnStep(const StepReport& report) override {
    RESBM_RETURN_IF_ERROR(console_->OnStep(report));
    recorder_->OnStep(report);
    metrics_->OnStep(report);
    if (on_step_ && !stopped_ && !on_step_(report)) {
      stopped_ = true;
      host_->Interrupt();
    }
    return absl::OkStatus();
  }
  absl::Status OnEvaluation(const EvaluationReport& report) override {
    recorder_->OnEvaluation(report);
    metrics_->OnEvaluation(report);
    return console_->OnEvaluation(report);
  }
  void OnProgress(int stage, const v1::Progress& progress) override {
    metrics_->OnProgress(stage, progress);
    console_->OnProgress(stage, progress);
  }

 private:
  RunConsole* const console_;
  RunRecorder* const recorder_;
  RunMetrics* const metrics_;
  const std::function<bool(const StepReport&)>& on_step_;
  RunHost* host_ = nullptr;
  bool stopped_ = false;
};

}  // namespace

TrainingResult RunTraining(const TrainingRequest& request, SignalledRun* signals) {
  TrainingResult out;
  auto fail = [&](const absl::Status& status, int code) {
    PrintError(request.command, status);
    out.code = static_cast<ExitCode>(code);
    return out;
  };
  const v1::Job& job = request.job;
  const std::vector<std::string> addresses = StageAddresses(request.fleet, job);
  auto setup = SetUpRun(job, RunKind::kTrain, request.fleet.requested(), NewJobId(job.name()));
  if (!setup.ok()) return fail(setup.status(), kExitUsage);

  std::optional<InitialWeights> initial;
  if (job.has_init_from()) {
    auto read = InitialWeights::Read(job.init_from(), setup->plan.stages);
    if (!read.ok()) return fail(read.status(), kExitUsage);
    initial = *std::move(read);
    initial->AddTo(&setup->plan);
  }

  RunMetrics run_metrics(*setup);
  auto endpoint = ServeMetrics(request.metrics_listen, &run_metrics);
  if (!endpoint.ok()) return fail(endpoint.status(), kExitUsage);

  // Remote stage servers first: a run that none can serve leaves nothing behind.
  std::unique_ptr<Fleet> fleet;
  if (!addresses.empty()) {
    auto reached = MakeFleet(request.fleet, *setup, addresses, "");
    if (!reached.ok()) return fail(reached.status(), ExitCodeOfFleet(reached.status()));
    fleet = *std::move(reached);
  }
  RunDirectory::Options where;
  where.path = request.where.run_dir;
  where.root = request.where.runs;
  where.name = job.name();
  auto directory = RunDirectory::Create(where);
  if (!directory.ok()) return fail(directory.status(), kExitUsage);
  out.directory = (*directory)->path();
  std::string text;
  google::protobuf::TextFormat::PrintToString(job, &text);
  auto epoch = (*directory)->NextEpoch();
  absl::Status written = (*directory)->Write(kJobFile, text);
  written.Update(epoch.status());
  if (!written.ok()) {
    (*directory)->Abandon();
    return fail(written, kExitUsage);
  }
  setup->plan.coordinator_epoch = *epoch;
  if (fleet == nullptr) {
    auto started = MakeFleet(request.fleet, *setup, addresses, (*directory)->path());
    if (!started.ok()) {
      // A job that these stages cannot do: their logs have nothing to add.
      if (absl::IsInvalidArgument(started.status())) RemoveLogs((*directory)->path());
      (*directory)->Abandon();
      return fail(started.status(), ExitCodeOfFleet(started.status()));
    }
    fleet = *std::move(started);
  }

  if (const absl::Status listed = (*directory)->Write(kStagesFile, StagesJson(*setup, fleet.get())); !listed.ok()) {
    RemoveLogs((*directory)->path());
    (*directory)->Abandon();
    return fail(listed, kExitUsage);
  }

  auto console = RunConsole::Create(*setup, fleet.get(), request.output, (*directory)->File(kMetricsFile));
  if (!console.ok()) return fail(console.status(), kExitUsage);
  (*console)->Note(absl::StrFormat("training \"%s\": %d %s, %d steps of %d samples in %d micro-batches, into %s",
                                   job.name(), setup->stages(), setup->stages() == 1 ? "stage" : "stages",
                                   setup->plan.total_steps, job.batch().samples(), job.batch().micro_batches(),
                                   (*directory)->path()));
  if (*endpoint != nullptr) (*console)->Note(absl::StrCat("metrics: http://", (*endpoint)->address(), "/metrics"));
  if (job.model().resnet().norm() == v1::BATCH_NORM) {
    (*console)->Note(absl::StrFormat(
        "BatchNorm normalises by the statistics of one micro-batch (about %d samples): results depend on "
        "batch.micro_batches",
        job.batch().samples() / job.batch().micro_batches()));
  }
  RunRecorder recorder(*setup, fleet.get(),
                       {(*directory)->path(), (*directory)->File(kTraceFile), text,
                        [&](const std::string& line) { (*console)->Note(line); }});
  StoppingObserver observer(console->get(), &recorder, &run_metrics, request.on_step);
  absl::Status unfit;  // the job names parameters that the stages do not have
  setup->plan.check_ready = [&](const std::vector<v1::Ready>& ready) -> absl::Status {
    unfit = CheckParameterGroups(job.optimizer(), ready);
    if (!unfit.ok() || !initial.has_value()) return unfit;
    RESBM_ASSIGN_OR_RETURN(const std::string line, initial->Check(ready));
    (*console)->Note(line);
    return absl::OkStatus();
  };
  RunHost host(&*setup, fleet.get(), initial.has_value() ? initial->shards() : std::vector<std::string>(), &observer);
  observer.set_host(&host);
  if (request.on_start) request.on_start(setup->plan.total_steps);
  const absl::Status result = signals->Run(&host);
  (*console)->Finish();
  out.summary = (*console)->Summarize();
  const bool trained = host.driver().committed_steps() > 0;
  out.stopped = observer.stopped();
  for (const v1::Ready& ready : host.driver().ready()) {
    out.parameters.insert(out.parameters.end(), ready.parameter_names().begin(), ready.parameter_names().end());
  }

  absl::Status saved;
  if (result.ok() && trained) saved = Save(&host, directory->get(), out.summary);
  // Behind the weights: it asks the stages for their clocks once more, and that may take its time.
  recorder.Finish();
  host.Release();
  // Weights or names that do not fit the model are a file's fault, not a peer's; and who interrupts a run before its first
  // step knows why it has nothing: in both cases nothing stays, not even the logs of local stage servers.
  const bool bad_file = !unfit.ok() || (initial.has_value() && !trained && absl::IsInvalidArgument(result));
  const bool given_up = !trained && signals->interrupted() && (result.ok() || absl::IsCancelled(result));
  if (bad_file || given_up) RemoveLogs((*directory)->path());
  if (bad_file || given_up || (!result.ok() && !trained && !fleet->local())) {
    (*directory)->Abandon();
    out.directory.clear();
  }
  if (!result.ok()) {
    if (trained) saved = (*directory)->Write(kSummaryFile, ToJson(out.summary));
    PrintError(request.command, result);
    if (trained) {
      std::cerr << "resbm " << request.command << ": " << host.driver().committed_steps()
                << " steps were committed; their figures are in " << (*directory)->path() << std::endl;
    }
    out.code = signals->interrupted() ? kExitInterrupted : bad_file ? kExitUsage : kExitPeer;
    return out;
  }
  if (!saved.ok()) {
    // The weights come from the stages: one that is lost now is a peer's fault, a full disk is not.
    const bool peer = absl::IsUnavailable(saved) || absl::IsDeadlineExceeded(saved);
    return fail(Annotate(saved, "the run is not saved"), peer ? kExitPeer : kExitUsage);
  }
  if (given_up) {
    PrintError(request.command, absl::CancelledError("interrupted before the first step; there is nothing to save"));
  }
  out.saved = trained;
  out.code = signals->interrupted() ? kExitInterrupted : kExitOk;
  return out;
}

}  // namespace resbm::coordinator
