// What is said about a command line that cannot be parsed.
#ifndef RESBM_COORDINATOR_CLI_USAGE_ERROR_H_
#define RESBM_COORDINATOR_CLI_USAGE_ERROR_H_

#include <string>

#include <CLI/CLI.hpp>

namespace resbm::coordinator {

// After app.parse() threw `error`, which is neither help nor version: one line in the form of every other error, with
// the nearest name of a command or option that does not exist, and a line that says where the help is.
std::string UsageErrorText(const CLI::App& app, const CLI::ParseError& error);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_CLI_USAGE_ERROR_H_
