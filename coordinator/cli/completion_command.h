// `resbm completion`: what a shell needs to complete this command line.
#ifndef RESBM_COORDINATOR_CLI_COMPLETION_COMMAND_H_
#define RESBM_COORDINATOR_CLI_COMPLETION_COMMAND_H_

#include <string>

#include <CLI/CLI.hpp>

namespace resbm::coordinator {

struct CompletionOptions {
  const CLI::App* app = nullptr;  // of the whole command line; set before the command runs
  std::string shell;
};

void AddTo(CLI::App* app, CompletionOptions* options);

// The exit code.
int Completion(const CompletionOptions& options);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_COMPLETION_COMMAND_H_
