// Commented job files to start from: `resbm init --preset NAME` writes one. They are files of deploy/jobs,
// built in.
#ifndef RESBM_COORDINATOR_JOB_PRESETS_H_
#define RESBM_COORDINATOR_JOB_PRESETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace resbm::coordinator {

// Names that PresetText knows, the usual one first.
std::vector<std::string> PresetNames();

// The text of a job file. INVALID_ARGUMENT: an unknown name.
absl::StatusOr<std::string> PresetText(absl::string_view name);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_JOB_PRESETS_H_
