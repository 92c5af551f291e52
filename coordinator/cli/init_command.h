// `resbm init` writes a commented job file; `resbm fields` explains the fields of one.
#ifndef RESBM_COORDINATOR_CLI_INIT_COMMAND_H_
#define RESBM_COORDINATOR_CLI_INIT_COMMAND_H_

#include <string>

#include <CLI/CLI.hpp>

#include "coordinator/cli/options.h"

namespace resbm::coordinator {

struct InitOptions {
  std::string preset = "fmnist";
  std::string file = "job.textproto";
  OutputOptions output;
};

struct FieldsOptions {
  std::string path;
  OutputOptions output;
};

void AddTo(CLI::App* app, InitOptions* options);
void AddTo(CLI::App* app, FieldsOptions* options);

// Exit codes.
int Init(const InitOptions& options);
int Fields(const FieldsOptions& options);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_INIT_COMMAND_H_
