#include "coordinator/cli/completion.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coordinator/cli/command_line.h"
#include "tests/support/subprocess.h"

namespace resbm::coordinator {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// A file with the script of a shell.
std::string Script(const std::string& shell) {
  const CommandLine line;
  const auto script = CompletionScript(line.app(), shell);
  EXPECT_TRUE(script.ok()) << script.status();
  const std::string path = testing::NewFolder("completion") + "/script";
  testing::WriteFileOrDie(path, script.ok() ? *script : "");
  return path;
}

std::vector<std::string> Lines(const std::string& text) { return absl::StrSplit(text, '\n', absl::SkipEmpty()); }

// What bash offers for the last of `words`, as it has split them.
std::vector<std::string> Bash(const std::vector<std::string>& words, const std::string& folder = "/") {
  std::string array;
  for (const std::string& word : words) absl::StrAppend(&array, "'", word, "' ");
  const testing::Finished bash = testing::RunProgram(
      {"/bin/bash", "-c",
       absl::StrCat("set -u; cd ", folder, "; source ", Script("bash"), "; COMP_WORDS=(", array,
                    "); COMP_CWORD=", words.size() - 1, "; _resbm; printf '%s\\n' \"${COMPREPLY[@]}\"")});
  EXPECT_EQ(bash.code, 0) << bash.err;
  EXPECT_EQ(bash.err, "");
  return Lines(bash.out);
}

TEST(Completion, BashCompletesCommands) {
  EXPECT_THAT(Bash({"resbm", "tr"}), ElementsAre("train"));
  EXPECT_THAT(Bash({"resbm", "com"}), ElementsAre("compare", "completion"));
  EXPECT_THAT(Bash({"resbm", "--v"}), ElementsAre("--version"));
}

TEST(Completion, BashCompletesTheOptionsOfACommand) {
  EXPECT_THAT(Bash({"resbm", "train", "--loc"}), ElementsAre("--local-stages"));
  EXPECT_THAT(Bash({"resbm", "compare", "--ga"}), ElementsAre("--gate"));
  EXPECT_THAT(Bash({"resbm", "compare", "--loc"}), IsEmpty());
}

TEST(Completion, BashCompletesValues) {
  EXPECT_THAT(Bash({"resbm", "init", "--preset", "c"}), ElementsAre("cifar10"));
  EXPECT_THAT(Bash({"resbm", "init", "--preset", "=", "c"}), ElementsAre("cifar10"));
  EXPECT_THAT(Bash({"resbm", "train", "--device", ""}), ElementsAre("auto", "cpu"));
  EXPECT_THAT(Bash({"resbm", "train", "--set", "boundary.ra"}), ElementsAre("boundary.ratio="));
  EXPECT_THAT(Bash({"resbm", "fields", "optimizer.muon.mom"}), ElementsAre("optimizer.muon.momentum"));
  EXPECT_THAT(Bash({"resbm", "completion", ""}), ElementsAre("bash", "zsh", "fish"));
  // A number is nobody's to guess, and the value of an option is no option.
  EXPECT_THAT(Bash({"resbm", "train", "--local-stages", ""}), IsEmpty());
}

TEST(Completion, BashCompletesFilesAndFolders) {
  const std::string folder = testing::NewFolder("files");
  testing::WriteFileOrDie(folder + "/run.textproto", "");
  ASSERT_EQ(testing::RunProgram({"/bin/mkdir", folder + "/runs"}).code, 0);
  EXPECT_THAT(Bash({"resbm", "train", "--job", "ru"}, folder), UnorderedElementsAre("run.textproto", "runs"));
  EXPECT_THAT(Bash({"resbm", "eval", "--run-dir", "ru"}, folder), ElementsAre("runs"));
  EXPECT_THAT(Bash({"resbm", "compare", "ru"}, folder), ElementsAre("runs"));
  EXPECT_THAT(Bash({"resbm", "status", "ru"}, folder), ElementsAre("runs"));
}

TEST(Completion, FishCompletesCommandsOptionsAndValues) {
  const auto fish = [](const std::string& typed) {
    const testing::Finished run = testing::RunProgram(
        {"/usr/bin/fish", "--no-config", "-c", absl::StrCat("source ", Script("fish"), "; complete -C '", typed, "'")},
        {"HOME=" + testing::NewFolder("home")});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    std::vector<std::string> words;
    for (const std::string& line : Lines(run.out)) words.push_back(line.substr(0, line.find('\t')));
    return words;
  };
  EXPECT_THAT(fish("resbm tr"), ElementsAre("train"));
  EXPECT_THAT(fish("resbm train --loc"), ElementsAre("--local-stages"));
  EXPECT_THAT(fish("resbm init --preset c"), ElementsAre("cifar10"));
  EXPECT_THAT(fish("resbm completion z"), Contains("zsh"));
}

TEST(Completion, ZshTakesTheScriptAndKnowsWhoseItIs) {
  const std::string script = Script("zsh");
  const testing::Finished syntax = testing::RunProgram({"/usr/bin/zsh", "-f", "-n", script});
  EXPECT_EQ(syntax.code, 0) << syntax.err;
  const testing::Finished loaded = testing::RunProgram(
      {"/usr/bin/zsh", "-f", "-c",
       absl::StrCat("autoload -U compinit; compinit -u -D; source ", script, "; print $_comps[resbm]")});
  EXPECT_EQ(loaded.code, 0) << loaded.err;
  EXPECT_EQ(loaded.out, "_resbm\n");
}

TEST(Completion, KnowsEveryOptionOfEveryCommand) {
  const CommandLine line;
  const std::vector<CompletedCommand> commands = CompletedCommands(line.app());
  ASSERT_GT(commands.size(), 5u);
  EXPECT_EQ(commands.front().name, "resbm");
  for (const std::string& shell : CompletionShells()) {
    const std::string script = *CompletionScript(line.app(), shell);
    for (const CompletedCommand& command : commands) {
      for (const CompletedOption& option : command.options) {
        for (const std::string& name : option.names) {
          const std::string written = shell != "fish"  ? name
                                      : name[1] == '-' ? "-l " + name.substr(2)
                                                       : "-s " + name.substr(1);
          EXPECT_THAT(script, HasSubstr(written)) << shell << ", " << command.name;
        }
      }
    }
  }
}

TEST(Completion, FieldsThatCannotBeSetAreNotOffered) {
  const CommandLine line;
  std::vector<std::string> fields;
  for (const CompletedCommand& command : CompletedCommands(line.app())) {
    for (const CompletedOption& option : command.options) {
      if (command.name == "train" && option.names.back() == "--set") fields = option.value.choices;
    }
  }
  EXPECT_THAT(fields, Contains("cut_point.0.after="));
  EXPECT_THAT(fields, Not(Contains("checkpoint.keep=")));
  EXPECT_THAT(fields, Not(Contains("boundary=")));
}

TEST(Completion, AnUnknownShellIsRefusedWithThoseThatAreKnown) {
  const CommandLine line;
  EXPECT_EQ(CompletionScript(line.app(), "tcsh").status(),
            absl::InvalidArgumentError("no completion for \"tcsh\"; there are bash, zsh, fish"));
}

}  // namespace
}  // namespace resbm::coordinator
