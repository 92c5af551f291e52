#include "coordinator/cli/command_line.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coordinator/cli/exit_code.h"

namespace resbm::coordinator {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<const CLI::App*> CommandsOf(const CommandLine& line) {
  return line.app().get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> Commands() {
  const CommandLine line;
  std::vector<std::string> names;
  for (const CLI::App* command : CommandsOf(line)) names.push_back(command->get_name());
  return names;
}

struct Parsed {
  std::optional<int> code;  // none: there is a command to run
  std::string out, err;
};

Parsed Parse(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"resbm"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  CommandLine line;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Parsed parsed;
  parsed.code = line.Parse(static_cast<int>(argv.size()), argv.data());
  parsed.out = ::testing::internal::GetCapturedStdout();
  parsed.err = ::testing::internal::GetCapturedStderr();
  return parsed;
}

// The words behind "resbm" of each example in a help text, as a shell would split them.
std::vector<std::vector<std::string>> Examples(const std::string& help) {
  std::vector<std::vector<std::string>> examples;
  const std::size_t begin = help.find("\nExample");
  if (begin == std::string::npos) return examples;
  const std::vector<std::string> lines = absl::StrSplit(help.substr(begin + 1), '\n');
  for (const std::string& line : lines) {
    const std::size_t program = line.find("resbm ");
    if (program == std::string::npos) continue;
    const std::string command = line.substr(program + 6, line.find_first_of("#|)", program) - program - 6);
    std::vector<std::string>& words = examples.emplace_back();
    const std::vector<std::string> parts = absl::StrSplit(command, '"');
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (i % 2 == 1) {  // in quotes
        words.push_back(parts[i]);
        continue;
      }
      for (const absl::string_view word : absl::StrSplit(parts[i], ' ', absl::SkipEmpty())) words.emplace_back(word);
    }
  }
  return examples;
}

TEST(CommandLine, EveryHelpHasExamplesAndTheyParse) {
  std::vector<std::string> commands = Commands();
  commands.push_back("");  // the program's own
  for (const std::string& command : commands) {
    const Parsed help =
        Parse(command.empty() ? std::vector<std::string>{"--help"} : std::vector{command, std::string("--help")});
    EXPECT_EQ(help.code, kExitOk) << command;
    const auto examples = Examples(help.out);
    EXPECT_FALSE(examples.empty()) << help.out;
    for (const std::vector<std::string>& example : examples) {
      EXPECT_TRUE(command.empty() || example.front() == command) << command;
      const Parsed parsed = Parse(example);
      const bool shows_help = example.back() == "--help";
      EXPECT_EQ(parsed.code, shows_help ? std::optional<int>(kExitOk) : std::nullopt)
          << command << ": " << ::testing::PrintToString(example) << parsed.err;
    }
  }
}

TEST(CommandLine, EveryCommandHasTheCommonOptions) {
  const CommandLine line;
  for (const CLI::App* app : CommandsOf(line)) {
    const std::string command = app->get_name();
    EXPECT_EQ(Parse({command, "--version"}).out, "resbm 0.1.0\n") << command;
    std::set<std::string> names;
    for (const CLI::Option* option : app->get_options()) {
      EXPECT_NE(option->get_description(), "") << command << " " << option->get_name();
      for (const std::string& name : option->get_lnames()) names.insert(name);
      for (const std::string& name : option->get_snames()) names.insert(name);
    }
    // Its output is a script, the same everywhere.
    if (command == "completion") continue;
    for (const char* name : {"json", "quiet", "q", "no-color"})
      EXPECT_TRUE(names.count(name)) << command << " " << name;
  }
}

TEST(CommandLine, VersionAndHelpGoToStdout) {
  const Parsed version = Parse({"--version"});
  EXPECT_EQ(version.code, kExitOk);
  EXPECT_EQ(version.out, "resbm 0.1.0\n");
  EXPECT_EQ(version.err, "");
  EXPECT_EQ(Parse({"--help"}).err, "");
}

TEST(CommandLine, AnUnknownOptionIsCodeTwoOnEveryCommandWithTheNearestName) {
  for (const std::string& command : Commands()) {
    const Parsed parsed = Parse({command, "--hepl"});
    EXPECT_EQ(parsed.code, kExitUsage);
    EXPECT_EQ(parsed.out, "");
    EXPECT_EQ(parsed.err, absl::StrCat("resbm ", command, ": no option --hepl; did you mean \"--help\"?\nTry: resbm ",
                                       command, " --help\n"));
  }
  EXPECT_THAT(Parse({"train", "--job", "a", "--local-stage=3"}).err,
              StartsWith("resbm train: no option --local-stage; did you mean \"--local-stages\"?\n"));
  // Nothing is near: no guess.
  EXPECT_THAT(Parse({"eval", "--run-dir", "a", "--xylophone"}).err, StartsWith("resbm eval: no option --xylophone\n"));
  EXPECT_THAT(Parse({"--quiett"}).err, StartsWith("resbm: no option --quiett\n"));
}

TEST(CommandLine, ANameWrittenWrongIsSaidBeforeWhatIsMissingBecauseOfIt) {
  EXPECT_THAT(Parse({"train", "--jbo", "job.textproto"}).err,
              StartsWith("resbm train: no option --jbo; did you mean \"--job\"?\n"));
}

TEST(CommandLine, AnUnknownCommandGetsTheNearestOne) {
  const Parsed near = Parse({"trian", "--job", "a"});
  EXPECT_EQ(near.code, kExitUsage);
  EXPECT_EQ(near.err, "resbm: no command \"trian\"; did you mean \"train\"?\nTry: resbm --help\n");
  EXPECT_THAT(Parse({"xylophone"}).err, StartsWith("resbm: no command \"xylophone\"; there are init, train, "));
}

TEST(CommandLine, NoCommandNamesThem) {
  const Parsed parsed = Parse({});
  EXPECT_EQ(parsed.code, kExitUsage);
  EXPECT_THAT(parsed.err, StartsWith("resbm: name a command: init, train, "));
}

TEST(CommandLine, WhatIsMissingOrOutOfRangeIsNamed) {
  EXPECT_EQ(Parse({"train"}).err, "resbm train: --job is required\nTry: resbm train --help\n");
  const Parsed range = Parse({"train", "--job", "a", "--local-stages", "0"});
  EXPECT_EQ(range.code, kExitUsage);
  EXPECT_THAT(range.err, HasSubstr("--local-stages"));
  EXPECT_THAT(range.err, EndsWith("Try: resbm train --help\n"));
  EXPECT_THAT(Parse({"train", "job.textproto"}).err,
              StartsWith("resbm train: \"job.textproto\" is not expected here\n"));
}

}  // namespace
}  // namespace resbm::coordinator
