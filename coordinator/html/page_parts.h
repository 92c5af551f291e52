// Files compiled in by embed.py.
#ifndef RESBM_COORDINATOR_HTML_PAGE_PARTS_H_
#define RESBM_COORDINATOR_HTML_PAGE_PARTS_H_

#include "absl/strings/string_view.h"

namespace resbm::coordinator {

extern const absl::string_view kPageTemplate;  // page/report.html, with {{NAME}} where something is to be put in
extern const absl::string_view kPageStyle;     // page/report.css
extern const absl::string_view kPageScript;    // page/*.js
extern const absl::string_view kChartLibrary;  // Chart.js, for browsers
extern const absl::string_view kChartLibraryLicence;

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_HTML_PAGE_PARTS_H_
