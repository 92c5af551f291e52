#include "coordinator/cli/completion_command.h"

#include <iostream>

#include "absl/strings/str_join.h"
#include "coordinator/cli/completion.h"
#include "coordinator/cli/exit_code.h"
#include "coordinator/cli/options.h"

namespace resbm::coordinator {

void AddTo(CLI::App* app, CompletionOptions* options) {
  app->add_option("shell", options->shell, "The shell that asks")
      ->type_name(absl::StrJoin(CompletionShells(), "|"))
      ->required();
  app->footer(
      "Examples:\n"
      "  source <(resbm completion bash)        # in ~/.bashrc to keep it; zsh alike\n"
      "  resbm completion fish | source         # in ~/.config/fish/config.fish to keep it");
}

int Completion(const CompletionOptions& options) {
  const auto script = CompletionScript(*options.app, options.shell);
  if (!script.ok()) {
    PrintError("completion", script.status());
    return kExitUsage;
  }
  std::cout << *script << std::flush;
  return kExitOk;
}

}  // namespace resbm::coordinator
