#include "coordinator/cli/verify_command.h"

#include <iostream>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/cli/exit_code.h"
#include "coordinator/cli/temporary_folder.h"
#include "coordinator/cli/training.h"
#include "coordinator/compare/run_difference.h"
#include "coordinator/compare/run_record.h"
#include "coordinator/job/validate.h"
#include "coordinator/report/run_directory.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

constexpr char kCommand[] = "verify";

int Fail(const absl::Status& status, int code) {
  PrintError(kCommand, status);
  return code;
}

std::string Stages(std::size_t count) { return absl::StrFormat("%d stage%s", count, count == 1 ? "" : "s"); }

// A few steps, nothing but training.
absl::StatusOr<v1::Job> ShortJob(const VerifyOptions& options, bool split) {
  std::vector<std::string> set = options.job.set;
  if (split) {
    set.insert(set.end(), options.split_set.begin(), options.split_set.end());
  } else {
    // By hand or automatic: one stage has no partition. Nor windows of several.
    set.push_back("partition={}");
    set.push_back("schedule.windows=[]");
  }
  set.push_back(absl::StrCat("run.steps=", options.steps));
  set.push_back("run.evaluate=false");
  set.push_back("run.signals=true");
  RESBM_ASSIGN_OR_RETURN(LoadedJob loaded,
                         LoadValidJob(options.job.job, set, split ? options.fleet.requested() : std::optional<int>(1)));
  return std::move(loaded.job);
}

// Trains, and gathers what happened.
absl::StatusOr<RunTrace> Train(const v1::Job& job, const VerifyOptions& options, bool split, const std::string& folder,
                               SignalledRun* signals, int* code) {
  RunTrace trace;
  TrainingRequest request;
  request.command = kCommand;
  request.job = job;
  request.fleet = options.fleet;
  if (!split) {
    request.fleet.stages.clear();
    request.fleet.local_stages = 1;
  }
  request.output = options.output;
  request.where.run_dir = folder;
  std::size_t stages = 0;
  request.on_step = [&](const StepReport& report) {
    StepTrace& step = trace.steps.emplace_back();
    step.step = report.step;
    step.loss = report.decision.loss;
    step.gradient_norm = report.decision.gradient_norm;
    step.skipped = report.decision.decision == v1::Commit::SKIP;
    for (const v1::Computed& computed : report.computed) {
      step.squared_norms.insert(step.squared_norms.end(), computed.squared_norms().begin(),
                                computed.squared_norms().end());
    }
    const auto add_signals = [&](const v1::Computed& computed, absl::string_view prefix) {
      for (const v1::Signal& signal : computed.signals()) {
        if (!absl::StartsWith(signal.name(), prefix)) continue;
        step.at_cuts.emplace_back(absl::StrCat(signal.cut_point(), " ", signal.name()), signal.value());
      }
    };
    for (const v1::Computed& computed : report.computed) add_signals(computed, "z_");
    for (auto computed = report.computed.rbegin(); computed != report.computed.rend(); ++computed) {
      add_signals(*computed, "gradient_");
    }
    stages = report.computed.size();
    return true;
  };
  const TrainingResult result = RunTraining(request, signals);
  *code = result.code;
  if (result.code != kExitOk) return absl::AbortedError("the run did not end well");
  trace.name = Stages(stages);
  trace.parameters = result.parameters;
  RESBM_ASSIGN_OR_RETURN(trace.weights, ReadWholeFile(absl::StrCat(folder, "/", kModelFile)));
  return trace;
}

absl::StatusOr<RunTrace> TraceOf(const std::string& path) {
  RunTrace trace;
  trace.name = path;
  RESBM_ASSIGN_OR_RETURN(const std::string metrics, ReadWholeFile(absl::StrCat(path, "/", kMetricsFile)));
  auto lines = ParseMetrics(metrics);
  if (!lines.ok()) return Annotate(lines.status(), absl::StrCat(path, "/", kMetricsFile));
  for (const MetricsLine& line : *lines) {
    trace.steps.push_back({line.step, line.loss, line.grad_norm, line.skipped, {}, {}});
  }
  RESBM_ASSIGN_OR_RETURN(trace.weights, ReadWholeFile(absl::StrCat(path, "/", kModelFile)));
  return trace;
}

nlohmann::ordered_json ToJson(const std::vector<TensorDifference>& tensors) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const TensorDifference& t : tensors)
    out.push_back({{"name", t.name}, {"what", t.what}, {"relative", t.relative}});
  return out;
}

int Report(const RunTrace& a, const RunTrace& b, const OutputOptions& output) {
  const auto difference = CompareRuns(a, b);
  if (!difference.ok()) return Fail(difference.status(), kExitUsage);
  if (output.json) {
    const nlohmann::ordered_json out = {{"equal", difference->equal()},
                                        {"first", a.name},
                                        {"second", b.name},
                                        {"steps", difference->steps},
                                        {"parameters", difference->parameters},
                                        {"tensors", difference->tensors},
                                        {"first_difference", difference->first_step},
                                        {"gradients", ToJson(difference->gradients)},
                                        {"weights", ToJson(difference->weights)}};
    std::cout << out.dump(2) << std::endl;
  } else {
    std::cout << Describe(a, b, *difference) << std::flush;
  }
  return difference->equal() ? kExitOk : kExitCheckFailed;
}

int CompareDirectories(const VerifyOptions& options) {
  const auto a = TraceOf(options.run_dir);
  if (!a.ok()) return Fail(a.status(), kExitUsage);
  const auto b = TraceOf(options.against);
  if (!b.ok()) return Fail(b.status(), kExitUsage);
  return Report(*a, *b, options.output);
}

}  // namespace

void AddTo(CLI::App* app, VerifyOptions* options) {
  AddTo(app, &options->job, /*required=*/false);
  AddTo(app, &options->fleet);
  app->add_option("--steps", options->steps, "Steps to train (default: 3)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000000}));
  app->add_option("--split-set", options->split_set,
                  "Override a job field in the split run only, e.g. schedule.kind=GPIPE: does it change anything?")
      ->type_name("PATH=VALUE")
      ->take_all();
  app->add_option("--run-dir", options->run_dir, "Instead of training: compare this run with --against")
      ->type_name("DIR");
  app->add_option("--against", options->against, "The other run")->type_name("DIR");
  AddTo(app, &options->output, "Print the result as JSON on stdout instead of a line");
  AddVerbose(app, &options->output, "Say which stage waits for what");
  app->footer(
      "Examples:\n"
      "  resbm verify --job job.textproto --local-stages 3\n"
      "  resbm verify --job job.textproto --stages host-a:50051,host-b:50051 --steps 10\n"
      "  resbm verify --run-dir runs/a-1 --against runs/a-2");
}

int Verify(const VerifyOptions& options) {
  if (options.run_dir.empty() != options.against.empty()) {
    return Fail(absl::InvalidArgumentError("--run-dir and --against go together: they name the two runs"), kExitUsage);
  }
  if (options.job.job.empty() == options.run_dir.empty()) {
    return Fail(absl::InvalidArgumentError("give either --job, or --run-dir and --against"), kExitUsage);
  }
  if (!options.run_dir.empty()) return CompareDirectories(options);

  if (auto status = Check(options.fleet); !status.ok()) return Fail(status, kExitUsage);
  SignalledRun signals;  // before any thread
  const auto whole_job = ShortJob(options, /*split=*/false);
  if (!whole_job.ok()) return Fail(whole_job.status(), kExitUsage);
  const auto split_job = ShortJob(options, /*split=*/true);
  if (!split_job.ok()) return Fail(split_job.status(), kExitUsage);
  const TemporaryFolder folder("resbm-verify");
  if (folder.path().empty()) {
    return Fail(absl::ResourceExhaustedError("cannot make a temporary folder; set TMPDIR to one with space"),
                kExitUsage);
  }
  int code = kExitOk;
  const auto whole = Train(*whole_job, options, false, folder.path() + "/whole", &signals, &code);
  if (code != kExitOk) return code;
  if (!whole.ok()) return Fail(whole.status(), kExitUsage);
  const auto split = Train(*split_job, options, true, folder.path() + "/split", &signals, &code);
  if (code != kExitOk) return code;
  if (!split.ok()) return Fail(split.status(), kExitUsage);
  if (split->name == whole->name && options.split_set.empty()) {
    return Fail(absl::InvalidArgumentError("the job has one stage: nothing was split; give --local-stages 2"),
                kExitUsage);
  }
  return Report(*whole, *split, options.output);
}

}  // namespace resbm::coordinator
