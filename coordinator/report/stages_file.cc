#include "coordinator/report/stages_file.h"

#include <nlohmann/json.hpp>

namespace resbm::coordinator {

std::string ToJson(const StagesFile& stages) {
  nlohmann::ordered_json json;
  json["job_id"] = stages.job_id;
  json["total_steps"] = stages.total_steps;
  json["stages"] = stages.addresses;
  return json.dump(2) + "\n";
}

absl::StatusOr<StagesFile> ParseStagesFile(absl::string_view text) {
  const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  const absl::Status bad = absl::DataLossError("no object with job_id, total_steps and stages");
  if (!json.is_object()) return bad;
  const auto job = json.find("job_id"), steps = json.find("total_steps"), stages = json.find("stages");
  if (job == json.end() || !job->is_string() || steps == json.end() || !steps->is_number_integer() ||
      stages == json.end() || !stages->is_array()) {
    return bad;
  }
  StagesFile file;
  file.job_id = job->get<std::string>();
  file.total_steps = steps->get<std::int64_t>();
  for (const auto& address : *stages) {
    if (!address.is_string()) return bad;
    file.addresses.push_back(address.get<std::string>());
  }
  return file;
}

}  // namespace resbm::coordinator
