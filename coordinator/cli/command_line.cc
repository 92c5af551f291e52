#include "coordinator/cli/command_line.h"

#include <iostream>

#include "coordinator/cli/exit_code.h"
#include "coordinator/cli/usage_error.h"
#include "proto/base/version.h"

namespace resbm::coordinator {

CommandLine::CommandLine()
    : app_("Trains pipelines that are cut at residual bottlenecks, over slow networks.", "resbm") {
  SetVersion(&app_);
  app_.require_subcommand(1);
  app_.footer(
      "Exit codes: 0 done, 1 a check failed, 2 usage, job, files, 3 a stage server, 130 interrupted.\n"
      "Examples:\n"
      "  resbm init job.textproto\n"
      "  resbm train --job job.textproto\n"
      "  resbm train --help");
  Add("init", "Write a commented job file", &init_, Init);
  Add("train", "Train a job", &train_, Train);
  Add("eval", "Loss and accuracy of a run on its test set", &eval_, Eval);
  Add("status", "What the stages of a run do at the moment", &status_, ShowStatus);
  Add("sweep", "Accuracy against bytes over the values of a field, on part of the data", &sweep_, Sweep);
  Add("compare", "Finished runs side by side", &compare_, CompareRunDirectories);
  Add("report", "One or more runs as an HTML page: curves, timeline, bytes, memory", &report_, Report);
  Add("verify", "Check that the pipeline trains as one process does, bit for bit", &verify_, Verify);
  Add("fields", "Explain the fields of a job file", &fields_, Fields);
  completion_.app = &app_;
  Add("completion", "Completion of this command line for a shell", &completion_, Completion);
}

void CommandLine::SetVersion(CLI::App* app) {
  app->set_version_flag("--version", VersionText("resbm"), "Print the version");
}

std::optional<int> CommandLine::Parse(int argc, const char* const* argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // help and version
      app_.exit(error);
      return kExitOk;
    }
    std::cerr << UsageErrorText(app_, error) << std::flush;
    return kExitUsage;
  }
  return std::nullopt;
}

}  // namespace resbm::coordinator
