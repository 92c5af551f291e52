// What may be written to a file descriptor: colours, redrawn lines, how wide.
#ifndef RESBM_COORDINATOR_REPORT_TERMINAL_H_
#define RESBM_COORDINATOR_REPORT_TERMINAL_H_

#include <string>

#include "absl/strings/string_view.h"

namespace resbm::coordinator {

struct Terminal {
  bool interactive = false;  // a line may be drawn over
  bool color = false;
  int columns = 80;
};

// interactive: a terminal that is not TERM=dumb. color: that, and neither `no_color` (--no-color) nor a
// non-empty NO_COLOR (https://no-color.org).
Terminal DetectTerminal(int fd, bool no_color);

// `text` in bold where the terminal has colour.
std::string Bold(const Terminal& terminal, absl::string_view text);

// 754.2 -> "12:34", 3754 -> "1:02:34".
std::string FormatDuration(double seconds);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_TERMINAL_H_
