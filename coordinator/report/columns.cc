#include "coordinator/report/columns.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace resbm::coordinator {

std::string FormatColumns(const std::vector<TableRow>& rows, std::size_t left, const Terminal& terminal) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const TableRow& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const TableRow& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - row[c].size(), ' ');
      absl::StrAppend(&line, "  ", c < left ? row[c] + padding : padding + row[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&out, &row == &rows[0] ? Bold(terminal, line) : line, "\n");
  }
  return out;
}

std::string HumanBytes(double bytes) {
  if (!(bytes >= 0)) return "-";
  if (bytes < 1e5) return absl::StrFormat("%.0f", bytes);
  const char* unit = "kB";
  double scaled = bytes / 1e3;
  for (const char* larger : {"MB", "GB", "TB"}) {
    if (scaled < 1000) break;
    scaled /= 1000;
    unit = larger;
  }
  return absl::StrFormat("%.1f %s", scaled, unit);
}

std::string Indented(absl::string_view text, std::size_t columns) {
  std::string out, line = " ";
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    const std::size_t blanks = line.find_first_not_of(' ');
    if (blanks != std::string::npos && line.size() + 1 + word.size() > columns) {
      absl::StrAppend(&out, line, "\n");
      line = "   ";
    }
    absl::StrAppend(&line, " ", word);
  }
  return absl::StrCat(out, line, "\n");
}

}  // namespace resbm::coordinator
