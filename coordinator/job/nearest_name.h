// "Did you mean ...?" for names that a person typed.
#ifndef RESBM_COORDINATOR_JOB_NEAREST_NAME_H_
#define RESBM_COORDINATOR_JOB_NEAREST_NAME_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace resbm::coordinator {

// Least number of inserted, deleted, replaced or swapped neighbouring characters that turns one into the
// other (optimal string alignment). Letter case costs nothing.
int EditDistance(absl::string_view a, absl::string_view b);

// The candidate with the least distance, the first among equals; empty if there is none.
std::string NearestName(absl::string_view name, const std::vector<std::string>& candidates);

// The end of an error message: `did you mean "ratio"?`, or where nothing is near, `known: a, b, c`. Empty
// without candidates.
std::string SuggestName(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_NEAREST_NAME_H_
