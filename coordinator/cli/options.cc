#include "coordinator/cli/options.h"

#include <cstdlib>
#include <iostream>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace resbm::coordinator {

std::optional<int> FleetOptions::requested() const {
  if (!stages.empty()) return static_cast<int>(stages.size());
  if (local_stages > 0) return local_stages;
  return std::nullopt;
}

void AddTo(CLI::App* app, OutputOptions* options, const std::string& json) {
  app->add_flag("--json", options->json, json);
  app->add_flag("-q,--quiet", options->quiet, "Nothing on stderr but errors");
  app->add_flag("--no-color", options->no_color, "No colours (also: NO_COLOR in the environment)");
}

void AddVerbose(CLI::App* app, OutputOptions* options, const std::string& meaning) {
  app->add_flag("-v,--verbose", options->verbose, meaning);
}

void AddTo(CLI::App* app, JobOptions* options, bool required) {
  auto* job = app->add_option("--job", options->job, "Job file; `resbm init` writes one")->type_name("FILE");
  if (required) job->required();
  app->add_option("--set", options->set, "Override a job field, e.g. --set boundary.ratio=8; may be repeated")
      ->type_name("PATH=VALUE")
      ->take_all();
}

void AddTo(CLI::App* app, FleetOptions* options) {
  app->add_option("--stages", options->stages, "Stage servers, first to last; without it local ones are started")
      ->type_name("HOST:PORT,...")
      ->delimiter(',');
  app->add_option("--local-stages", options->local_stages, "How many local stage servers to start")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app->add_option("--stage-server", options->stage_server, "The stage_server program, if it is not beside this one")
      ->type_name("FILE");
  app->add_option("--device", options->device, "Of local stage servers")->type_name("auto|cpu|cuda:N");
}

absl::Status Check(const FleetOptions& options) {
  if (!options.stages.empty() && options.local_stages > 0) {
    return absl::InvalidArgumentError("--stages and --local-stages exclude each other; give one of them");
  }
  std::set<std::string> seen;
  for (const std::string& address : options.stages) {
    const std::size_t colon = address.rfind(':');
    int port = 0;
    if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 1 ||
        port > 65535) {
      return absl::InvalidArgumentError(absl::StrFormat("--stages: \"%s\" is not host:port", address));
    }
    if (!seen.insert(address).second) {
      return absl::InvalidArgumentError(
          absl::StrFormat("--stages: %s is given twice; every stage needs a stage server of its own", address));
    }
  }
  return absl::OkStatus();
}

void PrintError(const std::string& command, const absl::Status& status) {
  const std::string text = absl::StrReplaceAll(status.message(), {{"\n", "\n  "}});
  std::cerr << "resbm " << command << ": " << text << std::endl;
}

}  // namespace resbm::coordinator
