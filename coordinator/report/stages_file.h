// stages.json in a run directory: where the run's stage servers are, for those who watch it.
#ifndef RESBM_COORDINATOR_REPORT_STAGES_FILE_H_
#define RESBM_COORDINATOR_REPORT_STAGES_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace resbm::coordinator {

inline constexpr char kStagesFile[] = "stages.json";

struct StagesFile {
  std::string job_id;
  std::int64_t total_steps = 0;
  // As the coordinator reaches them, first stage to last.
  std::vector<std::string> addresses;
};

// {"job_id": "...", "total_steps": 100, "stages": ["host-a:50051", ...]}, with its line end.
std::string ToJson(const StagesFile& stages);
// DATA_LOSS: not such a file.
absl::StatusOr<StagesFile> ParseStagesFile(absl::string_view json);

}  // namespace resbm::coordinator

#endif  // RESBM_COORDINATOR_REPORT_STAGES_FILE_H_
