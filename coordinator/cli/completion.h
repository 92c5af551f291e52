// Shell completion, written out from the options that CLI11 knows: what the help says is what completes.
#ifndef RESBM_COORDINATOR_CLI_COMPLETION_H_
#define RESBM_COORDINATOR_CLI_COMPLETION_H_

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace resbm::coordinator {

// What stands for a value, by the type that its help names.
struct CompletedValue {
  enum class Kind {
    kNone,        // a flag
    kAnything,    // nothing to offer: "N", "HOST:PORT,..."
    kFile,        // "FILE"
    kFolder,      // "DIR", "RUN_DIR", "RUN"
    kChoice,      // "auto|cpu|cuda:N": those without a placeholder (a capital letter)
    kField,       // "PATH": of a job, any
    kFieldToSet,  // "PATH=VALUE": of a job, with a value
  };
  Kind kind = Kind::kNone;
  std::string type;                  // as in the help
  std::vector<std::string> choices;  // of kChoice, kField and kFieldToSet (there with the "=")
};

struct CompletedOption {
  std::vector<std::string> names;  // "-q", "--quiet"; empty: positional
  std::string description;
  CompletedValue value;
  bool repeats = false;
};

struct CompletedCommand {
  std::string name;
  std::string description;
  std::vector<CompletedOption> options;  // in the order of the help
  std::vector<CompletedOption> positionals;
};

// Of `app` itself (first) and its commands.
std::vector<CompletedCommand> CompletedCommands(const CLI::App& app);

std::vector<std::string> CompletionShells();

// A script to be sourced. INVALID_ARGUMENT: another shell than those of CompletionShells.
absl::StatusOr<std::string> CompletionScript(const CLI::App& app, absl::string_view shell);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_COMPLETION_H_
