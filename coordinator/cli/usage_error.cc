#include "coordinator/cli/usage_error.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/job/nearest_name.h"

namespace resbm::coordinator {
namespace {

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The nearest one, or nothing: a list of all options would be help, not a hint.
std::string DidYouMean(const std::string& name, const std::vector<std::string>& names) {
  const std::string hint = SuggestName(name, names);
  return absl::StartsWith(hint, "did you mean") ? absl::StrCat("; ", hint) : "";
}

// The first thing that no option or command took. CLI11 may have complained of something that is missing instead, but a
// name that is written wrong is the usual reason for that.
std::string Unexpected(const CLI::App& app, bool is_root) {
  const std::vector<std::string> rest = app.remaining();
  if (rest.empty()) return "";
  const std::string& first = rest.front();
  if (absl::StartsWith(first, "-") && first != "-" && first != "--") {
    const std::string name = first.substr(0, first.find('='));
    return absl::StrCat("no option ", name, DidYouMean(name, OptionNames(app)));
  }
  if (!is_root) return absl::StrCat("\"", first, "\" is not expected here");
  const std::vector<std::string> names = CommandNames(app);
  const std::string hint = DidYouMean(first, names);
  return absl::StrCat("no command \"", first, "\"", hint.empty() ? "; there are " + absl::StrJoin(names, ", ") : hint);
}

}  // namespace

std::string UsageErrorText(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* at = &app;
  std::string unexpected = Unexpected(app, /*is_root=*/true);
  std::string name = app.get_name();
  if (unexpected.empty() && !app.get_subcommands().empty()) {
    at = app.get_subcommands().front();
    unexpected = Unexpected(*at, /*is_root=*/false);
    absl::StrAppend(&name, " ", at->get_name());
  }
  std::string message = unexpected.empty() ? error.what() : unexpected;
  if (unexpected.empty() && at == &app && app.get_subcommands().empty()) {
    message = absl::StrCat("name a command: ", absl::StrJoin(CommandNames(app), ", "));
  }
  return absl::StrCat(name, ": ", message, "\nTry: ", name, " --help\n");
}

}  // namespace resbm::coordinator
