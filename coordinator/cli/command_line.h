// The command line of `resbm`: every command with its options. Apart from main, so that tests can look at the options
// and parse the examples in the help texts without running anything.
#ifndef RESBM_COORDINATOR_CLI_COMMAND_LINE_H_
#define RESBM_COORDINATOR_CLI_COMMAND_LINE_H_

#include <functional>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "coordinator/cli/compare_command.h"
#include "coordinator/cli/completion_command.h"
#include "coordinator/cli/eval_command.h"
#include "coordinator/cli/init_command.h"
#include "coordinator/cli/report_command.h"
#include "coordinator/cli/status_command.h"
#include "coordinator/cli/sweep_command.h"
#include "coordinator/cli/train_command.h"
#include "coordinator/cli/verify_command.h"

namespace resbm::coordinator {

// For one parse.
class CommandLine {
 public:
  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // The exit code where nothing is left to run: help and version went to stdout (0), what is wrong to stderr (2).
  std::optional<int> Parse(int argc, const char* const* argv);

  // Runs the command that was parsed; its exit code.
  int Run() const { return run_(); }

  const CLI::App& app() const { return app_; }

 private:
  template <typename Options>
  void Add(const std::string& name, const std::string& description, Options* options, int (*run)(const Options&)) {
    CLI::App* command = app_.add_subcommand(name, description);
    AddTo(command, options);
    SetVersion(command);
    command->callback([this, options, run] { run_ = [options, run] { return run(*options); }; });
  }
  static void SetVersion(CLI::App* app);

  CLI::App app_;
  InitOptions init_;
  TrainOptions train_;
  EvalOptions eval_;
  StatusOptions status_;
  CompareOptions compare_;
  ReportCommandOptions report_;
  SweepOptions sweep_;
  VerifyOptions verify_;
  FieldsOptions fields_;
  CompletionOptions completion_;
  std::function<int()> run_;
};

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_COMMAND_LINE_H_
