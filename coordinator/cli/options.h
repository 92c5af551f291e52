// Command line options that commands share.
#ifndef RESBM_COORDINATOR_CLI_OPTIONS_H_
#define RESBM_COORDINATOR_CLI_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/status/status.h"

namespace resbm::coordinator {

struct OutputOptions {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  bool no_color = false;
};

struct JobOptions {
  std::string job;  // a file
  std::vector<std::string> set;
};

struct FleetOptions {
  std::vector<std::string> stages;  // host:port; empty = local ones
  int local_stages = 0;             // 0 = as many as the job says
  std::string stage_server;         // empty = beside this program
  std::string device = "auto";

  // What the command line asks for, if it does.
  std::optional<int> requested() const;
};

struct RunDirectoryOptions {
  std::string run_dir;
  std::string runs = "runs";
};

// --json (`json` says what it prints), --quiet, --no-color: every command has them.
void AddTo(CLI::App* app, OutputOptions* options, const std::string& json);
// --verbose, of the commands that have more to say.
void AddVerbose(CLI::App* app, OutputOptions* options, const std::string& meaning);
void AddTo(CLI::App* app, JobOptions* options, bool required);
void AddTo(CLI::App* app, FleetOptions* options);

// INVALID_ARGUMENT: --stages and --local-stages together, an address that is not host:port, one given twice.
absl::Status Check(const FleetOptions& options);

// One line to stderr: "resbm train: <message>"; further lines of the message are indented.
void PrintError(const std::string& command, const absl::Status& status);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_OPTIONS_H_
