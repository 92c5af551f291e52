#include "coordinator/cli/completion.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "coordinator/cli/completion_scripts.h"
#include "coordinator/job/field_docs.h"

namespace resbm::coordinator {
namespace {

using Kind = CompletedValue::Kind;

// "cut_point.0.after": as --set takes it, without brackets, which shells would have to quote.
std::vector<std::string> JobFields(bool to_set) {
  const std::vector<FieldDoc> fields = *ListFields("");  // the empty path is there
  std::vector<std::string> paths;
  for (const FieldDoc& field : fields) {
    const bool message = field.type == "message" || field.type == "list of messages";
    if (to_set && (message || !field.unsupported.empty())) continue;
    paths.push_back(absl::StrCat(absl::StrReplaceAll(field.path, {{"[i]", ".0"}}), to_set ? "=" : ""));
  }
  return paths;
}

CompletedValue ValueOf(const CLI::Option& option) {
  CompletedValue value;
  if (option.get_items_expected_max() == 0) return value;
  value.type = option.get_type_name();
  value.kind = Kind::kAnything;
  if (value.type == "FILE") value.kind = Kind::kFile;
  if (absl::EndsWith(value.type, "DIR") || value.type == "RUN") value.kind = Kind::kFolder;
  if (value.type == "PATH" || value.type == "PATH=VALUE") {
    value.kind = value.type == "PATH" ? Kind::kField : Kind::kFieldToSet;
    value.choices = JobFields(value.kind == Kind::kFieldToSet);
  }
  if (absl::StrContains(value.type, "|")) {
    value.kind = Kind::kChoice;
    for (const absl::string_view choice : absl::StrSplit(value.type, '|')) {
      if (std::none_of(choice.begin(), choice.end(), absl::ascii_isupper)) value.choices.emplace_back(choice);
    }
  }
  return value;
}

CompletedCommand CompletedCommandOf(const CLI::App& app) {
  CompletedCommand command;
  command.name = app.get_name();
  command.description = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    CompletedOption out;
    for (const std::string& name : option->get_snames()) out.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) out.names.push_back("--" + name);
    out.description = option->get_description();
    out.value = ValueOf(*option);
    out.repeats = option->get_items_expected_max() > 1;
    (out.names.empty() ? command.positionals : command.options).push_back(std::move(out));
  }
  return command;
}

}  // namespace

std::vector<CompletedCommand> CompletedCommands(const CLI::App& app) {
  std::vector<CompletedCommand> commands = {CompletedCommandOf(app)};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(CompletedCommandOf(*command));
  }
  return commands;
}

std::vector<std::string> CompletionShells() { return {"bash", "zsh", "fish"}; }

absl::StatusOr<std::string> CompletionScript(const CLI::App& app, absl::string_view shell) {
  if (shell == "bash") return BashCompletion(CompletedCommands(app));
  if (shell == "zsh") return ZshCompletion(CompletedCommands(app));
  if (shell == "fish") return FishCompletion(CompletedCommands(app));
  return absl::InvalidArgumentError(
      absl::StrCat("no completion for \"", shell, "\"; there are ", absl::StrJoin(CompletionShells(), ", ")));
}

}  // namespace resbm::coordinator
