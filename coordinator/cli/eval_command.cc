#include "coordinator/cli/eval_command.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <numbers>
#include <sstream>

#include <nlohmann/json.hpp>
#include <xxhash.h>

#include "absl/strings/str_format.h"
#include "coordinator/cli/exit_code.h"
#include "coordinator/cli/run_command.h"
#include "coordinator/cli/run_console.h"
#include "coordinator/cli/temporary_folder.h"
#include "coordinator/job/validate.h"
#include "coordinator/report/run_directory.h"
#include "coordinator/run/weights.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

constexpr char kCommand[] = "eval";

int Fail(const absl::Status& status, int code) {
  PrintError(kCommand, status);
  return code;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  if (!in || !(bytes << in.rdbuf())) {
    return absl::NotFoundError(absl::StrFormat("cannot read %s; has the run that it belongs to ended well?", path));
  }
  return std::move(bytes).str();
}

// Keeps the report for the output.
class EvaluationObserver : public RunObserver {
 public:
  absl::Status OnStep(const StepReport&) override { return absl::OkStatus(); }
  absl::Status OnEvaluation(const EvaluationReport& report) override {
    report_ = report;
    return absl::OkStatus();
  }
  void OnProgress(int, const v1::Progress&) override {}
  const EvaluationReport& report() const { return report_; }

 private:
  EvaluationReport report_;
};

void Print(const EvaluationReport& report, bool is_text, const std::string& weights, const OutputOptions& output) {
  if (output.json) {
    nlohmann::ordered_json out = {{"weights", weights},
                                  {is_text ? "tokens" : "samples", report.samples},
                                  {"validation_loss", report.loss},
                                  {"top1", report.top1},
                                  {"seconds", absl::ToDoubleSeconds(report.duration)}};
    if (is_text) {
      out["perplexity"] = std::exp(report.loss);
      out["bits_per_byte"] = report.loss / std::numbers::ln2;
    }
    std::cout << out.dump(2) << std::endl;
    return;
  }
  std::cout << weights << ": test " << DescribeEvaluation(report, is_text) << "\n";
}

}  // namespace

void AddTo(CLI::App* app, EvalOptions* options) {
  app->add_option("--run-dir", options->run_dir, "The run to evaluate: its job and its final weights")
      ->type_name("DIR")
      ->required();
  app->add_option("--weights", options->weights, "Another safetensors file with this model's weights")
      ->type_name("FILE");
  AddTo(app, &options->job, /*required=*/false);
  AddTo(app, &options->fleet);
  AddTo(app, &options->output, "Print the figures as JSON on stdout instead of a line");
  app->footer("Examples:\n"
      "  resbm eval --run-dir runs/fashion-mnist-r16-1\n"
      "  resbm eval --run-dir runs/fashion-mnist-r16-1 --local-stages 1 --json");
}

int Eval(const EvalOptions& options) {
  if (auto status = Check(options.fleet); !status.ok()) return Fail(status, kExitUsage);
  SignalledRun signals;  // before any thread

  const std::filesystem::path run = options.run_dir;
  const std::string job_file = options.job.job.empty() ? (run / kJobFile).string() : options.job.job;
  const auto loaded = LoadValidJob(job_file, options.job.set, options.fleet.requested());
  if (!loaded.ok()) return Fail(loaded.status(), kExitUsage);
  const std::string weights_file = options.weights.empty() ? (run / kModelFile).string() : options.weights;
  const auto weights = ReadFile(weights_file);
  if (!weights.ok()) return Fail(weights.status(), kExitUsage);
  auto setup = SetUpRun(loaded->job, RunKind::kEvaluate, options.fleet.requested(), NewJobId(loaded->job.name()));
  if (!setup.ok()) return Fail(setup.status(), kExitUsage);
  auto shards = SplitWeights(*weights, setup->plan.stages);
  if (!shards.ok()) return Fail(Annotate(shards.status(), weights_file), kExitUsage);
  for (const std::string& shard : *shards) {
    v1::Resume::Restore restore;
    restore.set_bytes(shard.size());
    restore.set_hash(XXH3_64bits(shard.data(), shard.size()));
    setup->plan.restore.push_back(restore);
  }
  setup->plan.origin = *weights;

  const TemporaryFolder logs("resbm-eval");
  auto fleet = MakeFleet(options.fleet, *setup, StageAddresses(options.fleet, loaded->job), logs.path());
  if (!fleet.ok()) return Fail(fleet.status(), ExitCodeOfFleet(fleet.status()));
  EvaluationObserver observer;
  RunHost host(&*setup, fleet->get(), *std::move(shards), &observer);
  const absl::Status result = signals.Run(&host);
  host.Release();
  if (signals.interrupted()) return kExitInterrupted;
  if (!result.ok()) {
    // Weights that do not fit the model are a file's fault, not a peer's.
    return Fail(result, result.code() == absl::StatusCode::kInvalidArgument ? kExitUsage : kExitPeer);
  }
  Print(observer.report(), setup->is_text(), weights_file, options.output);
  return kExitOk;
}

}  // namespace resbm::coordinator
