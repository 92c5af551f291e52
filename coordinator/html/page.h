// The report as one HTML file: page/*.{html,css,js}, the chart library and the data, put together.
#ifndef RESBM_COORDINATOR_HTML_PAGE_H_
#define RESBM_COORDINATOR_HTML_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace resbm::coordinator {

// `data`: JSON of ReportData. Nothing in `title` or `data` can end the element that holds it. The page loads nothing:
// its Content-Security-Policy forbids it.
std::string HtmlPage(absl::string_view title, absl::string_view data);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_HTML_PAGE_H_
