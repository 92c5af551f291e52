#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "coordinator/cli/completion_scripts.h"

namespace resbm::coordinator {
namespace {

using Kind = CompletedValue::Kind;

std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string Offer(const CompletedValue& value) {
  switch (value.kind) {
    case Kind::kNone: return "";
    case Kind::kFile: return " -r -F";
    case Kind::kFolder: return " -x -a '(__fish_complete_directories)'";
    case Kind::kAnything: return " -x";
    case Kind::kChoice:
    case Kind::kField:
    case Kind::kFieldToSet: return absl::StrCat(" -x -a ", Quoted(absl::StrJoin(value.choices, " ")));
  }
  return "";
}

std::string Line(const std::string& condition, const CompletedOption& option) {
  std::string line = absl::StrCat("complete -c resbm -n ", condition);
  for (const std::string& name : option.names) {
    absl::StrAppend(&line, absl::StartsWith(name, "--") ? " -l " : " -s ",
                    absl::string_view(name).substr(name[1] == '-' ? 2 : 1));
  }
  std::string offer = Offer(option.value);
  // -r and -x say that an option has a value; an argument has none.
  if (option.names.empty()) offer = absl::StrReplaceAll(offer, {{" -r", ""}, {" -x", ""}});
  absl::StrAppend(&line, offer, " -d ", Quoted(option.description), "\n");
  return line;
}

}  // namespace

std::string FishCompletion(const std::vector<CompletedCommand>& commands) {
  std::string out =
      "# Completion of resbm for fish, written by `resbm completion fish`. In ~/.config/fish/completions/resbm.fish, "
      "or:\n"
      "#   resbm completion fish | source\n"
      "complete -c resbm -f\n";
  for (const CompletedCommand& command : commands) {
    const bool root = &command == &commands.front();
    const std::string condition =
        root ? "__fish_use_subcommand" : Quoted(absl::StrCat("__fish_seen_subcommand_from ", command.name));
    if (!root) {
      absl::StrAppend(&out, "complete -c resbm -n __fish_use_subcommand -a ", command.name, " -d ",
                      Quoted(command.description), "\n");
    }
    for (const CompletedOption& option : command.options) out += Line(condition, option);
    for (const CompletedOption& positional : command.positionals) out += Line(condition, positional);
  }
  return out;
}

}  // namespace resbm::coordinator
