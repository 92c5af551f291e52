#include "coordinator/cli/sweep_command.h"

#include <unistd.h>

#include <cmath>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/cli/exit_code.h"
#include "coordinator/cli/training.h"
#include "coordinator/compare/arms.h"
#include "coordinator/compare/comparison.h"
#include "coordinator/compare/comparison_text.h"
#include "proto/data/load_dataset.h"
#include "coordinator/job/validate.h"
#include "coordinator/report/columns.h"
#include "coordinator/report/run_directory.h"
#include "coordinator/report/terminal.h"
#include "coordinator/sweep/advice.h"
#include "coordinator/sweep/early_stop.h"
#include "coordinator/sweep/sweep_plan.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

constexpr char kCommand[] = "sweep";

int Fail(const absl::Status& status, int code) {
  PrintError(kCommand, status);
  return code;
}

// An arm with the jobs of its seeds, and what became of them.
struct ArmRuns {
  SweepArm arm;
  std::string folder;  // of its runs, before the seed
  std::vector<v1::Job> jobs;
  std::vector<RunRecord> ended;
  std::vector<std::string> directories;  // of all that began
  int stopped = 0;
};

class SweepRun {
 public:
  SweepRun(const SweepOptions& options, SignalledRun* signals) : options_(options), signals_(signals) {
    // By the first law accuracy does not depend on the number of stages.
    if (!options_.fleet.requested()) options_.fleet.local_stages = 1;
  }

  // Checks every arm before the first is trained.
  absl::Status Plan();
  // Exit code.
  int Train();

 private:
  absl::StatusOr<v1::Job> MakeJob(const SweepArm& arm, int seed_index) const;
  absl::Status CountSamples();
  int TrainOne(ArmRuns* arm, std::size_t seed_index);
  SweepOutcome Outcome() const;
  std::string Json(const SweepOutcome* outcome, bool complete) const;
  absl::Status Write(bool complete);
  void Print() const;

  SweepOptions options_;
  SignalledRun* const signals_;
  std::int64_t samples_ = 0;  // training samples of each run
  std::vector<ArmRuns> arms_;
  std::unique_ptr<RunDirectory> folder_;
  std::vector<double> best_tenths_;
};

absl::StatusOr<v1::Job> SweepRun::MakeJob(const SweepArm& arm, int seed_index) const {
  std::vector<std::string> set = options_.job.set;
  set.insert(set.end(), arm.set.begin(), arm.set.end());
  // A partition by hand has stages of its own.
  if (options_.fleet.local_stages == 1) set.insert(set.end(), {"partition={}", "schedule.windows=[]"});
  RESBM_ASSIGN_OR_RETURN(LoadedJob loaded, LoadValidJob(options_.job.job, set, options_.fleet.requested()));
  v1::Job job = std::move(loaded.job);
  job.set_seed(job.seed() + seed_index);
  job.mutable_run()->set_evaluate(true);
  if (samples_ > 0) job.mutable_data()->set_limit_train(samples_);
  return job;
}

absl::Status SweepRun::CountSamples() {
  if (options_.fraction >= 1) return absl::OkStatus();
  RESBM_ASSIGN_OR_RETURN(const v1::Job job, MakeJob(arms_.front().arm, 0));
  RESBM_ASSIGN_OR_RETURN(const auto data,
                         data::LoadDataset(job.data(), data::Split::kTrain, job.model().transformer().context()));
  samples_ = FractionOfSamples(data->size(), options_.fraction, job.batch().samples());
  return absl::OkStatus();
}

absl::Status SweepRun::Plan() {
  SweepSpec spec;
  spec.field = options_.field;
  spec.values = SplitValues(options_.values);
  spec.baseline = options_.baseline;
  RESBM_ASSIGN_OR_RETURN(std::vector<SweepArm> arms, PlanSweep(spec));
  const std::vector<std::string> folders = FolderNames(arms);
  for (std::size_t i = 0; i < arms.size(); ++i) {
    ArmRuns& arm = arms_.emplace_back();
    arm.arm = std::move(arms[i]);
    arm.folder = folders[i];
  }
  RESBM_RETURN_IF_ERROR(CountSamples());
  for (ArmRuns& arm : arms_) {
    for (int i = 0; i < options_.seeds; ++i) {
      auto job = MakeJob(arm.arm, i);
      if (!job.ok()) return Annotate(job.status(), arm.arm.name);
      arm.jobs.push_back(*std::move(job));
    }
    for (const ArmRuns& other : arms_) {
      if (&other == &arm) break;
      if (!TrainTheSame(other.jobs.front(), arm.jobs.front())) continue;
      return absl::InvalidArgumentError(
          absl::StrFormat("%s and %s train the same: %s changes nothing there. Does every cut_point set it itself, or "
                          "has the boundary.kind no such field?",
                          other.arm.name, arm.arm.name, options_.field));
    }
  }
  RunDirectory::Options where;
  where.root = options_.runs;
  where.name = absl::StrCat(arms_.front().jobs.front().name(), "-sweep");
  RESBM_ASSIGN_OR_RETURN(folder_, RunDirectory::Create(where));
  return absl::OkStatus();
}

int SweepRun::TrainOne(ArmRuns* arm, std::size_t seed_index) {
  const v1::Job& job = arm->jobs[seed_index];
  TrainingRequest request;
  request.command = kCommand;
  request.job = job;
  request.fleet = options_.fleet;
  request.output = options_.output;
  request.where.run_dir = folder_->File(absl::StrFormat("%s-seed%d", arm->folder, job.seed()));
  std::optional<EarlyStop> early;
  request.on_start = [&](std::int64_t steps) { early.emplace(steps, options_.stop_margin, best_tenths_); };
  request.on_step = [&](const StepReport& report) {
    return early->OnStep(report.step, report.decision.loss, report.decision.decision == v1::Commit::SKIP);
  };
  const TrainingResult result = RunTraining(request, signals_);
  if (!result.directory.empty()) arm->directories.push_back(result.directory);
  if (result.code != kExitOk) return result.code;
  auto record = ReadRun(result.directory);
  if (!record.ok()) return Fail(record.status(), kExitUsage);
  arm->ended.push_back(*std::move(record));
  if (result.stopped) {
    ++arm->stopped;
    if (!options_.output.quiet) {
      std::cerr << absl::StrFormat("%s is stopped early: its loss stays far above the best\n", arm->arm.name)
                << std::flush;
    }
  } else {
    best_tenths_ = BestTenths(best_tenths_, early->tenths());
  }
  return kExitOk;
}

int SweepRun::Train() {
  for (ArmRuns& arm : arms_) {
    for (std::size_t i = 0; i < arm.jobs.size(); ++i) {
      // Other seeds would fare no better.
      if (arm.stopped > 0) break;
      if (signals_->interrupted()) break;
      const int code = TrainOne(&arm, i);
      const absl::Status written = Write(/*complete=*/false);
      if (code != kExitOk && code != kExitInterrupted) return code;
      if (!written.ok()) return Fail(written, kExitUsage);
    }
  }
  const bool complete = !signals_->interrupted();
  if (const absl::Status written = Write(complete); !written.ok()) return Fail(written, kExitUsage);
  Print();
  return complete ? kExitOk : kExitInterrupted;
}

SweepOutcome SweepRun::Outcome() const {
  SweepOutcome outcome;
  outcome.field = options_.field;
  outcome.fraction = options_.fraction;
  outcome.budget = options_.budget;
  std::vector<Arm> arms;
  for (const ArmRuns& arm : arms_) {
    if (arm.ended.empty()) {
      outcome.untried.push_back(arm.arm.name);
      continue;
    }
    arms.push_back({arm.arm.name, arm.ended});
    if (arm.stopped > 0) outcome.stopped.push_back({arm.arm.name, arm.stopped});
  }
  outcome.comparison = Compare(arms);
  return outcome;
}

absl::Status SweepRun::Write(bool complete) {
  bool baseline = !arms_.front().ended.empty();
  if (!baseline) return folder_->Write(kSweepFile, Json(nullptr, complete));
  const SweepOutcome outcome = Outcome();
  return folder_->Write(kSweepFile, Json(&outcome, complete));
}

std::string SweepRun::Json(const SweepOutcome* outcome, bool complete) const {
  nlohmann::ordered_json out = {{"field", options_.field},
                                {"complete", complete},
                                {"fraction", options_.fraction},
                                {"training_samples", samples_},
                                {"seeds", options_.seeds},
                                {"budget", options_.budget},
                                {"stop_margin", options_.stop_margin}};
  out["arms"] = nlohmann::ordered_json::array();
  for (const ArmRuns& arm : arms_) {
    nlohmann::ordered_json one = {{"name", arm.arm.name},      {"value", arm.arm.value},
                                  {"set", arm.arm.set},        {"runs", arm.directories},
                                  {"ended", arm.ended.size()}, {"stopped_early", arm.stopped > 0}};
    out["arms"].push_back(std::move(one));
  }
  out["chosen"] = nullptr;
  if (outcome != nullptr) {
    const ComparedArm* chosen = Choose(*outcome);
    if (chosen != nullptr) out["chosen"] = chosen->name;
    out["advice"] = Advise(*outcome);
    out["comparison"] = nlohmann::ordered_json::parse(ComparisonJson(outcome->comparison, {}));
  }
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void SweepRun::Print() const {
  if (arms_.front().ended.empty()) {
    std::cerr << "resbm sweep: the baseline did not end: nothing to compare with" << std::endl;
    return;
  }
  const SweepOutcome outcome = Outcome();
  if (options_.output.json) {
    std::cout << Json(&outcome, !signals_->interrupted()) << std::flush;
  } else {
    const Terminal terminal = DetectTerminal(STDOUT_FILENO, options_.output.no_color);
    std::cout << absl::StrFormat("%s on %s of the training data, %d seed%s an arm (budget: %.4g lost)\n\n",
                                 options_.field,
                                 options_.fraction < 1 ? absl::StrFormat("%.3g %%", 100 * options_.fraction) : "all",
                                 options_.seeds, options_.seeds == 1 ? "" : "s", options_.budget)
              << SweepTable(outcome, terminal) << "\n"
              << Bold(terminal, "Advice") << "\n";
    for (const std::string& line : Advise(outcome)) std::cout << Indented(line, 100);
    std::cout << std::flush;
  }
  if (!options_.output.quiet) std::cerr << "runs and " << kSweepFile << ": " << folder_->path() << std::endl;
}

}  // namespace

void AddTo(CLI::App* app, SweepOptions* options) {
  AddTo(app, &options->job, /*required=*/true);
  app->add_option("--field", options->field, "The job field to vary (default: boundary.ratio)")->type_name("PATH");
  app->add_option("--values", options->values, "Its values")->type_name("A,B,...")->required();
  app->add_option("--baseline", options->baseline,
                  "What the values are measured against: a job field, or none for the first value (default: "
                  "boundary.kind=IDENTITY for fields of boundary and wire, else none)")
      ->type_name("PATH=VALUE");
  app->add_option("--seeds", options->seeds, "Runs of each arm: the job's seed and the next ones (default: 3)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  app->add_option("--fraction", options->fraction, "Of the training data (default: 0.1)")
      ->type_name("F")
      ->check(CLI::Range(1e-9, 1.0));
  app->add_option("--budget", options->budget,
                  "Points of top-1 that may be lost; of language models percent of the loss (default: 0.5)")
      ->type_name("POINTS");
  app->add_option("--stop-margin", options->stop_margin,
                  "End a run whose loss stays so far above the best, as a share of it; 0 = never (default: 0.5)")
      ->type_name("SHARE")
      ->check(CLI::Range(0.0, 1000.0));
  app->add_option("--runs", options->runs, "The sweep goes to DIR/<job name>-sweep-<n> (default: runs)")
      ->type_name("DIR");
  AddTo(app, &options->fleet);
  AddTo(app, &options->output, "Print sweep.json on stdout instead of the table");
  AddVerbose(app, &options->output, "Say which stage waits for what");
  app->footer(
      "Examples:\n"
      "  resbm sweep --job job.textproto --values 4,8,16,32 --seeds 3\n"
      "  resbm sweep --job job.textproto --field optimizer.adamw.learning_rate --values 0.001,0.002,0.004 --fraction "
      "1");
}

int Sweep(const SweepOptions& options) {
  if (auto status = Check(options.fleet); !status.ok()) return Fail(status, kExitUsage);
  if (!std::isfinite(options.budget)) {
    return Fail(absl::InvalidArgumentError("--budget: not a number; an example is --budget 0.5"), kExitUsage);
  }
  SignalledRun signals;  // before any thread
  SweepRun sweep(options, &signals);
  if (auto status = sweep.Plan(); !status.ok()) return Fail(status, kExitUsage);
  return sweep.Train();
}

}  // namespace resbm::coordinator
