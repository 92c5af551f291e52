#include "coordinator/run/local_stages.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/subprocess.h"

namespace resbm::coordinator {
namespace {

// A stage server that does nothing for its end by itself.
std::string WriteStandIn(const std::string& folder) {
  const std::string path = folder + "/stand_in";
  testing::WriteFileOrDie(path,
                          "#!/bin/sh\n"
                          "echo $$ > " + folder + "/pid\n"
                          "echo LISTENING 127.0.0.1:1\n"
                          "while :; do sleep 1; done\n");
  chmod(path.c_str(), 0755);
  return path;
}

TEST(LocalStages, EndWithTheProcessThatStartedThemWhateverTheirProgramDoes) {
  const std::string folder = testing::NewFolder("local_stages");
  LocalStages::Options options;
  options.binary = WriteStandIn(folder);
  options.log_directory = folder;
  // The orphan becomes this process's child.
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const pid_t coordinator = fork();
  ASSERT_GE(coordinator, 0);
  if (coordinator == 0) {
    const auto stages = LocalStages::Start(options);
    if (!stages.ok()) _exit(1);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(coordinator, &status, 0), coordinator);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;

  const pid_t stage = std::atoi(testing::ReadFileOrDie(folder + "/pid").c_str());
  ASSERT_GT(stage, 0);
  const bool ended =
      testing::WaitUntil([&] { return waitpid(stage, &status, WNOHANG) == stage; }, absl::Seconds(20));
  if (!ended) kill(stage, SIGKILL);
  ASSERT_TRUE(ended) << "the stage server outlives its coordinator";
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST(LocalStages, AreStoppedByTheirOwner) {
  const std::string folder = testing::NewFolder("local_stages");
  LocalStages::Options options;
  options.binary = WriteStandIn(folder);
  options.log_directory = folder;
  pid_t stage = 0;
  {
    const auto stages = LocalStages::Start(options);
    ASSERT_TRUE(stages.ok()) << stages.status();
    EXPECT_EQ((*stages)->addresses(), std::vector<std::string>{"127.0.0.1:1"});
    stage = std::atoi(testing::ReadFileOrDie(folder + "/pid").c_str());
    ASSERT_GT(stage, 0);
    EXPECT_EQ(kill(stage, 0), 0);
  }
  EXPECT_EQ(kill(stage, 0), -1);
}

// A stage server that says so much and ends like that.
absl::Status StartThat(const std::string& ends) {
  const std::string folder = testing::NewFolder("local_stages");
  LocalStages::Options options;
  options.binary = folder + "/broken";
  testing::WriteFileOrDie(options.binary, "#!/bin/sh\necho no such device >&2\n" + ends + "\n");
  chmod(options.binary.c_str(), 0755);
  options.log_directory = folder;
  return LocalStages::Start(options).status();
}

TEST(LocalStages, WhatDoesNotListenIsNamedWithTheLastLineOfItsLog) {
  for (const char* ends : {"exit 1", "kill -9 $$"}) {
    const absl::Status status = StartThat(ends);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << ends;
    EXPECT_NE(status.message().find("did not start: no such device (see "), absl::string_view::npos) << status;
  }
}

TEST(LocalStages, WhatRefusesItsCommandLineSaysWhyInItsOwnWords) {
  const absl::Status status = StartThat("exit 2");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "no such device");
}

}  // namespace
}  // namespace resbm::coordinator
