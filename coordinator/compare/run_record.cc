#include "coordinator/compare/run_record.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/job/load_job.h"
#include "coordinator/plan/model_plan.h"
#include "coordinator/plan/partition.h"
#include "coordinator/report/run_directory.h"
#include "coordinator/report/summary.h"
#include "nlohmann/json.hpp"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

using Json = nlohmann::json;

// Deeper than any summary is.
constexpr int kMaxDepth = 8;

// Numbers below `json`, named by their path.
void Flatten(const Json& json, const std::string& path, int depth, std::map<std::string, double>* figures) {
  if (depth > kMaxDepth) return;
  const std::string prefix = path.empty() ? "" : path + ".";
  if (json.is_number()) {
    (*figures)[path] = json.get<double>();
  } else if (json.is_object()) {
    for (const auto& [name, value] : json.items()) Flatten(value, prefix + name, depth + 1, figures);
  } else if (json.is_array()) {
    int index = 0;
    for (const Json& value : json) {
      std::string name = absl::StrCat(index++);
      // Cuts go by name: their number differs with the number of stages.
      if (value.is_object() && value.contains("cut_point") && value["cut_point"].is_string() &&
          value.contains("direction") && value["direction"].is_string()) {
        name = absl::StrCat(value["cut_point"].get<std::string>(), ".", value["direction"].get<std::string>());
      }
      Flatten(value, prefix + name, depth + 1, figures);
    }
  }
}

std::optional<double> NumberOf(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number() ? std::optional<double>(found->get<double>()) : std::nullopt;
}

std::map<std::string, std::map<std::string, double>> SignalsOf(const Json& json) {
  std::map<std::string, std::map<std::string, double>> signals;
  if (!json.is_object()) return signals;
  for (const auto& [cut_point, values] : json.items()) {
    if (!values.is_object()) continue;
    for (const auto& [name, value] : values.items()) {
      if (value.is_number()) signals[cut_point][name] = value.get<double>();
    }
  }
  return signals;
}

void AddOfSummary(const Summary& summary, RunRecord* run) {
  std::map<std::string, double>& figures = run->figures;
  double bytes = 0, fp16 = 0;
  for (const BoundarySummary& b : summary.boundaries) {
    bytes += b.payload_bytes + b.metadata_bytes;
    fp16 += b.uncompressed_bytes.fp16;
  }
  if (!summary.boundaries.empty()) {
    figures[kBytesPerStep] = bytes;
    figures[kFp16BytesPerStep] = fp16;
  }
  double parameters = 0, peak = 0, utilization = 0;
  for (const StageSummary& stage : summary.stages) {
    parameters += static_cast<double>(stage.parameters);
    peak = std::max(peak, static_cast<double>(stage.peak_memory.total));
    utilization += stage.utilization / static_cast<double>(summary.stages.size());
    run->devices.push_back(stage.device);
  }
  if (summary.stages.empty()) return;
  run->stages = static_cast<int>(summary.stages.size());
  figures[kParameters] = parameters;
  figures[kPeakMemory] = peak;
  figures[kUtilization] = utilization;
}

// What would cross if every cut point were cut. A job of another version may not expand: then it is not known.
void AddOfPlan(RunRecord* run) {
  const auto model = ExpandModel(run->job);
  if (!model.ok() || model->boundaries.empty()) return;
  double bytes = 0, fp16 = 0;
  for (const v1::BoundarySpec& boundary : model->boundaries) {
    bytes += static_cast<double>(CrossingBytes(boundary));
    double elements = 1;
    for (const std::int64_t dim : boundary.input_shape()) elements *= static_cast<double>(dim);
    fp16 += 2 * 2 * elements;
  }
  run->figures[kPlannedBytes] = bytes;
  run->figures[kPlannedFp16Bytes] = fp16;
}

absl::Status NamedIn(const std::string& path, const char* file, const absl::Status& status) {
  return Annotate(status, absl::StrCat(path, "/", file));
}

}  // namespace

std::optional<double> RunRecord::figure(absl::string_view name) const {
  const auto found = figures.find(std::string(name));
  return found == figures.end() ? std::nullopt : std::optional<double>(found->second);
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  std::error_code error;
  if (!in || std::filesystem::is_directory(path, error)) {
    return absl::NotFoundError(absl::StrFormat("cannot read %s; is it a run that ended?", path));
  }
  if (in.peek() != std::ifstream::traits_type::eof()) bytes << in.rdbuf();
  return std::move(bytes).str();
}

absl::StatusOr<std::vector<MetricsLine>> ParseMetrics(absl::string_view text) {
  std::vector<MetricsLine> lines;
  for (std::size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const std::size_t end = text.find('\n', begin);
    if (end == absl::string_view::npos) break;
    const absl::string_view row = text.substr(begin, end - begin);
    begin = end + 1;
    const Json json = Json::parse(row.begin(), row.end(), nullptr, /*allow_exceptions=*/false);
    auto wrong = [&](const char* what) {
      return absl::InvalidArgumentError(absl::StrFormat("line %d: %s", number, what));
    };
    if (!json.is_object()) return wrong("not a JSON object");
    const auto step = json.find("step");
    const auto loss = json.find("loss");
    const auto skipped = json.find("skipped");
    if (step == json.end() || !step->is_number_integer()) return wrong("step is not a whole number");
    if (loss == json.end() || !(loss->is_number() || loss->is_null())) return wrong("loss is not a number or null");
    MetricsLine& line = lines.emplace_back();
    line.step = step->get<std::int64_t>();
    line.loss = loss->is_number() ? loss->get<double>() : std::numeric_limits<double>::quiet_NaN();
    line.skipped = skipped != json.end() && skipped->is_boolean() && skipped->get<bool>();
    line.grad_norm = NumberOf(json, "grad_norm");
    line.step_seconds = NumberOf(json, "step_seconds");
    line.learning_rate = NumberOf(json, "learning_rate");
    if (const auto reasons = json.find("non_finite"); reasons != json.end() && reasons->is_array()) {
      for (const Json& reason : *reasons) {
        if (reason.is_string()) line.non_finite.push_back(reason.get<std::string>());
      }
    }
    if (const auto signals = json.find("signals"); signals != json.end()) line.signals = SignalsOf(*signals);
    if (lines.size() > 1 && line.step <= lines[lines.size() - 2].step) return wrong("steps do not ascend");
  }
  return lines;
}

absl::StatusOr<RunRecord> MakeRunRecord(const std::string& path, const std::string& job, absl::string_view summary,
                                        absl::string_view metrics) {
  RunRecord run;
  run.path = path;
  const auto loaded = ParseJob(job, absl::StrCat(path, "/", kJobFile), {});
  if (!loaded.ok()) return loaded.status();
  run.job = loaded->job;
  run.job_text = job;
  const auto parsed = ParseSummary(summary);
  if (!parsed.ok()) return NamedIn(path, kSummaryFile, parsed.status());
  Flatten(Json::parse(summary.begin(), summary.end(), nullptr, /*allow_exceptions=*/false), "", 0, &run.figures);
  run.summary = *parsed;
  AddOfSummary(run.summary, &run);
  AddOfPlan(&run);
  auto lines = ParseMetrics(metrics);
  if (!lines.ok()) return NamedIn(path, kMetricsFile, lines.status());
  run.lines = *std::move(lines);
  for (const MetricsLine& line : run.lines) {
    if (!line.skipped && std::isfinite(line.loss)) run.curve.push_back({line.step, line.loss});
  }
  if (const auto slope = LossSlope(run.curve)) run.figures[kLossSlope] = *slope;
  run.spikes = LossSpikes(run.curve);
  run.figures[kLossSpikes] = static_cast<double>(run.spikes.size());
  return run;
}

absl::StatusOr<RunRecord> ReadRun(const std::string& path) {
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::NotFoundError(absl::StrFormat("no run directory %s", folder));
  }
  RESBM_ASSIGN_OR_RETURN(const std::string job, ReadWholeFile(absl::StrCat(folder, "/", kJobFile)));
  RESBM_ASSIGN_OR_RETURN(const std::string summary, ReadWholeFile(absl::StrCat(folder, "/", kSummaryFile)));
  RESBM_ASSIGN_OR_RETURN(const std::string metrics, ReadWholeFile(absl::StrCat(folder, "/", kMetricsFile)));
  return MakeRunRecord(folder, job, summary, metrics);
}

}  // namespace resbm::coordinator
