#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coordinator/cli/completion_scripts.h"

namespace resbm::coordinator {
namespace {

using Kind = CompletedValue::Kind;

std::string Words(const std::vector<std::string>& words) { return absl::StrCat("'", absl::StrJoin(words, " "), "'"); }

std::string Complete(const CompletedValue& value) {
  switch (value.kind) {
    case Kind::kFile: return "_resbm_paths -f";
    case Kind::kFolder: return "_resbm_paths -d";
    case Kind::kChoice:
    case Kind::kField: return absl::StrCat("_resbm_words ", Words(value.choices));
    case Kind::kFieldToSet: return absl::StrCat("compopt -o nospace 2>/dev/null; _resbm_words ", Words(value.choices));
    case Kind::kNone:
    case Kind::kAnything: break;
  }
  return ":";
}

}  // namespace

std::string BashCompletion(const std::vector<CompletedCommand>& commands) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < commands.size(); ++i) names.push_back(commands[i].name);
  std::string values, positionals, options;
  for (const CompletedCommand& command : commands) {
    const std::string at = &command == &commands.front() ? "" : command.name;
    std::vector<std::string> all;
    for (const CompletedOption& option : command.options) {
      all.insert(all.end(), option.names.begin(), option.names.end());
      if (option.value.kind == Kind::kNone) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back(absl::StrCat(at, ":", name));
      absl::StrAppendFormat(&values, "    %s) %s; return ;;\n", absl::StrJoin(patterns, "|"), Complete(option.value));
    }
    absl::StrAppendFormat(&options, "      \"%s\") _resbm_words %s ;;\n", at, Words(all));
    // Where several stand behind each other, the last kind is offered for all.
    if (!command.positionals.empty()) {
      absl::StrAppendFormat(&positionals, "    %s) %s ;;\n", at, Complete(command.positionals.back().value));
    }
  }
  return absl::StrCat(
      "# Completion of resbm for bash, written by `resbm completion bash`:\n"
      "#   source <(resbm completion bash)\n"
      "_resbm_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
      "_resbm_paths() {\n"
      "  compopt -o filenames 2>/dev/null\n"
      "  mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n"
      "}\n"
      "_resbm() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command= i\n"
      "  COMPREPLY=()\n"
      "  # Bash takes --job=FILE for three words.\n"
      "  if [[ $cur == \"=\" ]]; then cur=\n"
      "  elif [[ $prev == \"=\" ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  fi\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    case ${COMP_WORDS[i]} in\n"
      "      ",
      absl::StrJoin(names, "|"),
      ") command=${COMP_WORDS[i]}; break ;;\n"
      "    esac\n"
      "  done\n"
      "  case $command:$prev in\n",
      values,
      "  esac\n"
      "  if [[ $cur == -* ]]; then\n"
      "    case $command in\n",
      options,
      "    esac\n"
      "    return\n"
      "  fi\n"
      "  case $command in\n"
      "    \"\") _resbm_words ",
      Words(names), " ;;\n", positionals,
      "  esac\n"
      "}\n"
      "complete -F _resbm resbm\n");
}

}  // namespace resbm::coordinator
