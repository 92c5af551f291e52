#include "coordinator/report/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace resbm::coordinator {
namespace {

class TerminalTest : public ::testing::Test {
 protected:
  // A pseudo-terminal of 132 columns.
  TerminalTest() : main_(posix_openpt(O_RDWR | O_NOCTTY)) {
    EXPECT_EQ(grantpt(main_), 0);
    EXPECT_EQ(unlockpt(main_), 0);
    tty_ = open(ptsname(main_), O_RDWR | O_NOCTTY);
    winsize size{};
    size.ws_col = 132;
    EXPECT_EQ(ioctl(tty_, TIOCSWINSZ, &size), 0);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
  }
  ~TerminalTest() override {
    close(tty_);
    close(main_);
  }

  const int main_;
  int tty_ = -1;
};

TEST_F(TerminalTest, ATerminalHasColourAndColumns) {
  const Terminal terminal = DetectTerminal(tty_, false);
  EXPECT_TRUE(terminal.interactive);
  EXPECT_TRUE(terminal.color);
  EXPECT_EQ(terminal.columns, 132);
  EXPECT_EQ(Bold(terminal, "x"), "\x1b[1mx\x1b[0m");
}

TEST_F(TerminalTest, NoColourWhenAskedForByFlagOrEnvironment) {
  EXPECT_FALSE(DetectTerminal(tty_, true).color);
  setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(DetectTerminal(tty_, false).color);
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(DetectTerminal(tty_, false).color);
  EXPECT_TRUE(DetectTerminal(tty_, false).interactive);
  EXPECT_EQ(Bold(DetectTerminal(tty_, false), "x"), "x");
}

TEST_F(TerminalTest, ADumbTerminalAndAPipeArePlain) {
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(DetectTerminal(tty_, false).interactive);
  setenv("TERM", "xterm", 1);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Terminal terminal = DetectTerminal(ends[1], false);
  EXPECT_FALSE(terminal.interactive);
  EXPECT_FALSE(terminal.color);
  EXPECT_EQ(terminal.columns, 80);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(TerminalTest, DurationsReadLikeAClock) {
  EXPECT_EQ(FormatDuration(0), "0:00");
  EXPECT_EQ(FormatDuration(59.6), "1:00");
  EXPECT_EQ(FormatDuration(754.2), "12:34");
  EXPECT_EQ(FormatDuration(3754), "1:02:34");
  EXPECT_EQ(FormatDuration(-1), "?");
  EXPECT_EQ(FormatDuration(1e300), "?");
}

}  // namespace
}  // namespace resbm::coordinator
