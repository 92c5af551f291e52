#include "coordinator/html/page.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coordinator/html/page_parts.h"

namespace resbm::coordinator {
namespace {

// Within an element: text is text.
std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// "</script>" and "<!--" end or change a script element wherever they stand. In JSON "<" stands in strings only, where
// it may be written so.
std::string InScript(absl::string_view json) { return absl::StrReplaceAll(json, {{"<", "\\u003c"}}); }

}  // namespace

std::string HtmlPage(absl::string_view title, absl::string_view data) {
  // One pass: what is put in is not searched.
  return absl::StrReplaceAll(kPageTemplate, {{"{{title}}", Escaped(title)},
                                             {"{{style}}", kPageStyle},
                                             {"{{chart_library}}", kChartLibrary},
                                             {"{{chart_library_licence}}", Escaped(kChartLibraryLicence)},
                                             {"{{script}}", kPageScript},
                                             {"{{data}}", InScript(data)}});
}

}  // namespace resbm::coordinator
