#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "coordinator/cli/completion_scripts.h"

namespace resbm::coordinator {
namespace {

using Kind = CompletedValue::Kind;

std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Inside a specification of _arguments and _describe.
std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {":", "\\:"}, {"[", "\\["}, {"]", "\\]"}});
}

std::string Action(const CompletedValue& value) {
  switch (value.kind) {
    case Kind::kFile: return "_files";
    case Kind::kFolder: return "_files -/";
    case Kind::kChoice:
    case Kind::kField: return absl::StrCat("(", Escaped(absl::StrJoin(value.choices, " ")), ")");
    case Kind::kFieldToSet: return absl::StrCat("compadd -S \"\" ", absl::StrJoin(value.choices, " "));
    case Kind::kNone:
    case Kind::kAnything: break;
  }
  return "";
}

// ":what:how"
std::string Message(const CompletedValue& value) {
  return value.kind == Kind::kNone ? "" : absl::StrCat(":", Escaped(value.type), ":", Action(value));
}

void AddOption(const CompletedOption& option, std::string* out) {
  for (const std::string& name : option.names) {
    absl::StrAppend(out, " \\\n        ",
                    Quoted(absl::StrCat(option.repeats ? "*" : absl::StrCat("(", absl::StrJoin(option.names, " "), ")"),
                                        name, "[", Escaped(option.description), "]", Message(option.value))));
  }
}

}  // namespace

std::string ZshCompletion(const std::vector<CompletedCommand>& commands) {
  std::string root, described, cases;
  for (const CompletedOption& option : commands.front().options) AddOption(option, &root);
  for (std::size_t i = 1; i < commands.size(); ++i) {
    const CompletedCommand& command = commands[i];
    absl::StrAppend(&described, "\n        ", Quoted(absl::StrCat(command.name, ":", Escaped(command.description))));
    absl::StrAppend(&cases, "      ", command.name, ") _arguments -s");
    for (const CompletedOption& option : command.options) AddOption(option, &cases);
    for (const CompletedOption& positional : command.positionals) {
      absl::StrAppend(&cases, " \\\n        ",
                      Quoted(absl::StrCat(positional.repeats ? "*" : "", Message(positional.value))));
    }
    absl::StrAppend(&cases, " ;;\n");
  }
  return absl::StrCat(
      "#compdef resbm\n"
      "# Completion of resbm for zsh, written by `resbm completion zsh`. As a file _resbm in a folder of $fpath, or:\n"
      "#   source <(resbm completion zsh)\n"
      "_resbm() {\n"
      "  local curcontext=$curcontext state line\n"
      "  typeset -A opt_args\n"
      "  _arguments -C",
      root,
      " \\\n        '1: :->command' '*:: :->arguments'\n"
      "  case $state in\n"
      "    command)\n"
      "      local -a commands=(",
      described,
      ")\n"
      "      _describe command commands ;;\n"
      "    arguments) case $line[1] in\n",
      cases,
      "      esac ;;\n"
      "  esac\n"
      "}\n"
      "if [[ $funcstack[1] == _resbm ]]; then _resbm \"$@\"; else compdef _resbm resbm; fi\n");
}

}  // namespace resbm::coordinator
