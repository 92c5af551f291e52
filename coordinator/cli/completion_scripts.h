// The scripts of completion.h, a shell each.
#ifndef RESBM_COORDINATOR_CLI_COMPLETION_SCRIPTS_H_
#define RESBM_COORDINATOR_CLI_COMPLETION_SCRIPTS_H_

#include <string>
#include <vector>

#include "coordinator/cli/completion.h"

namespace resbm::coordinator {

// `commands` as CompletedCommands gives them: the program first.
std::string BashCompletion(const std::vector<CompletedCommand>& commands);
std::string ZshCompletion(const std::vector<CompletedCommand>& commands);
std::string FishCompletion(const std::vector<CompletedCommand>& commands);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_COMPLETION_SCRIPTS_H_
