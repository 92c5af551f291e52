// The table that ends a run.
#ifndef RESBM_COORDINATOR_REPORT_TABLE_H_
#define RESBM_COORDINATOR_REPORT_TABLE_H_

#include <cstdint>
#include <string>

#include "coordinator/report/summary.h"
#include "coordinator/report/terminal.h"

namespace resbm::coordinator {

// Plain ASCII, aligned, at most 100 columns wide (longer names are cut), headings bold where the terminal
// has colour. Loss (of text also bits a byte and perplexity), accuracy, speed; per cut and direction the bytes
// of a step beside what uncompressed fp16 and fp32 would take; per stage its times of a step and its peak
// memory (MB: 10^6). "-" where the summary has nothing.
std::string FormatTable(const Summary& summary, const Terminal& terminal);

// 75264 -> "75,264"; from ten million on "12.3 MB" (10^6), "GB", "TB".
std::string FormatBytes(double bytes);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_TABLE_H_
