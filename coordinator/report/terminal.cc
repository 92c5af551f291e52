#include "coordinator/report/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace resbm::coordinator {
namespace {

absl::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Terminal DetectTerminal(int fd, bool no_color) {
  Terminal terminal;
  terminal.interactive = isatty(fd) == 1 && Environment("TERM") != "dumb";
  terminal.color = terminal.interactive && !no_color && Environment("NO_COLOR").empty();
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.columns = size.ws_col;
  return terminal;
}

std::string Bold(const Terminal& terminal, absl::string_view text) {
  return terminal.color ? absl::StrCat("\x1b[1m", text, "\x1b[0m") : std::string(text);
}

std::string FormatDuration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const std::int64_t whole = std::llround(seconds);
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace resbm::coordinator
