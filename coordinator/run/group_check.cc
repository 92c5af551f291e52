#include "coordinator/run/group_check.h"

#include <fnmatch.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/job/nearest_name.h"

namespace resbm::coordinator {

absl::Status CheckParameterGroups(const v1::Optimizer& optimizer, const std::vector<v1::Ready>& stages) {
  if (optimizer.group().empty()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const v1::Ready& stage : stages) {
    names.insert(names.end(), stage.parameter_names().begin(), stage.parameter_names().end());
  }
  for (int i = 0; i < optimizer.group_size(); ++i) {
    const std::string& pattern = optimizer.group(i).match();
    const bool matched = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    });
    if (matched) continue;
    return absl::InvalidArgumentError(absl::StrCat("optimizer.group[", i, "].match: no parameter is named \"", pattern,
                                                   "\"; ", SuggestName(pattern, names)));
  }
  return absl::OkStatus();
}

}  // namespace resbm::coordinator
