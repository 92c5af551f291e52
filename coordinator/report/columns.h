// Plain text in aligned columns.
#ifndef RESBM_COORDINATOR_REPORT_COLUMNS_H_
#define RESBM_COORDINATOR_REPORT_COLUMNS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/report/terminal.h"

namespace resbm::coordinator {

using TableRow = std::vector<std::string>;

// Rows of equally many cells, the first a heading (bold where the terminal has colour). The first `left` columns
// are aligned left, the others right; two spaces before each.
std::string FormatColumns(const std::vector<TableRow>& rows, std::size_t left, const Terminal& terminal);

// For narrow columns: 75264 -> "75264", 1204224 -> "1.2 MB" (10^3, 10^6, ...; from 100,000 on). "-" for what is
// negative or not a number.
std::string HumanBytes(double bytes);

// `text` broken at spaces into lines of at most `columns`, the first indented by two, the others by four.
std::string Indented(absl::string_view text, std::size_t columns);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_COLUMNS_H_
