#include "coordinator/html/report_data.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coordinator/compare/arms.h"
#include "coordinator/compare/comparison.h"
#include "coordinator/compare/comparison_text.h"
#include "coordinator/html/link_use.h"
#include "coordinator/html/series.h"
#include "nlohmann/json.hpp"

namespace resbm::coordinator {
namespace {

using Json = nlohmann::ordered_json;

// Of a curve 4 points each.
constexpr int kCurveParts = 500;
constexpr int kSignalParts = 150;
constexpr int kMaxBins = 40;
constexpr int kMinBins = 8;
constexpr std::size_t kMaxSkipped = 500;
constexpr std::size_t kMaxSpikes = 500;
constexpr int kTimelineSteps = 3;
constexpr std::size_t kTimelineSpans = 6000;

// Six digits are more than a screen shows, and a third of the characters.
double Rounded(double value) {
  double rounded = value;
  return absl::SimpleAtod(absl::StrFormat("%.6g", value), &rounded) ? rounded : value;
}

Json ToJson(const Series& series) {
  Json values = Json::array();
  for (const double value : series.values) values.push_back(Rounded(value));
  return {{"steps", series.steps}, {"values", std::move(values)}};
}

// What summary.json says under a name, as it stands there: nulls and empty texts are left out.
Json Present(const Json& json) {
  if (json.is_array()) {
    Json out = Json::array();
    for (const Json& value : json) out.push_back(Present(value));
    return out;
  }
  if (!json.is_object()) return json;
  Json out = Json::object();
  for (const auto& [name, value] : json.items()) {
    if (!value.is_null() && value != "") out[name] = Present(value);
  }
  return out;
}

void AddCurves(const RunRecord& record, Json* run) {
  Series loss, rate, norm, seconds;
  std::map<std::string, std::map<std::string, Series>> signals;
  Json skipped = Json::array();
  std::int64_t skipped_steps = 0;
  for (const MetricsLine& line : record.lines) {
    if (line.learning_rate) rate.Add(line.step, *line.learning_rate);
    if (line.step_seconds) seconds.Add(line.step, *line.step_seconds);
    if (line.grad_norm) norm.Add(line.step, *line.grad_norm);
    for (const auto& [cut_point, values] : line.signals) {
      for (const auto& [name, value] : values) signals[cut_point][name].Add(line.step, value);
    }
    if (line.skipped) {
      ++skipped_steps;
      if (skipped.size() < kMaxSkipped) skipped.push_back({{"step", line.step}, {"reasons", line.non_finite}});
    }
  }
  for (const CurvePoint& point : record.curve) loss.Add(point.step, point.loss);

  Json& curves = (*run)["curves"] = Json::object();
  for (const auto& [name, curve] : {std::pair<const char*, const Series*>{"loss", &loss},
                                    {"learning_rate", &rate},
                                    {"grad_norm", &norm},
                                    {"step_seconds", &seconds}}) {
    if (!curve->empty()) curves[name] = ToJson(Thin(*curve, kCurveParts));
  }
  if (const int window = SmoothingWindow(static_cast<std::int64_t>(loss.steps.size())); window > 1) {
    Json smoothed = ToJson(Thin(Smooth(loss, window), kCurveParts));
    smoothed["window"] = window;
    (*run)["smoothed"] = std::move(smoothed);
  }
  if (skipped_steps > 0) {
    (*run)["skipped"] = std::move(skipped);
    (*run)["skipped_steps"] = skipped_steps;
  }
  if (!record.spikes.empty()) {
    const auto last = record.spikes.begin() + static_cast<std::ptrdiff_t>(std::min(record.spikes.size(), kMaxSpikes));
    (*run)["spikes"] = std::vector<std::int64_t>(record.spikes.begin(), last);
  }
  for (const auto& [cut_point, values] : signals) {
    for (const auto& [name, curve] : values) (*run)["signals"][cut_point][name] = ToJson(Thin(curve, kSignalParts));
  }
  if (!seconds.empty()) {
    const int bins = std::clamp(static_cast<int>(2 * std::sqrt(seconds.values.size())), kMinBins, kMaxBins);
    const Histogram histogram = HistogramOf(seconds.values, bins);
    (*run)["step_seconds"] = {
        {"from", histogram.from}, {"width", histogram.width}, {"counts", histogram.counts}, {"above", histogram.above}};
  }
}

void AddTrace(const TraceRecord& trace, Json* run) {
  const std::vector<TracedStep> typical = TypicalSteps(trace, 1, kTimelineSpans);
  const std::vector<TracedStep> steps = TypicalSteps(trace, kTimelineSteps, kTimelineSpans);
  if (steps.empty()) return;
  Json drawn = Json::array();
  for (const TracedStep& step : steps) {
    drawn.push_back({{"step", step.step}, {"start", step.start_us}, {"duration", step.duration_us}});
  }
  Json spans = Json::array();
  for (const TraceSpan& span : trace.spans) {
    if (span.step < steps.front().step || span.step > steps.back().step || spans.size() >= kTimelineSpans) continue;
    spans.push_back({span.stage, static_cast<int>(span.lane), span.category, span.name, span.step, span.micro_batch,
                     Rounded(span.start_us - steps.front().start_us), Rounded(span.duration_us), span.bytes});
  }
  for (Json& step : drawn) step["start"] = Rounded(step["start"].get<double>() - steps.front().start_us);
  (*run)["timeline"] = {{"stages", trace.stages},
                        {"traced", {trace.steps.front().step, trace.steps.back().step}},
                        {"steps", std::move(drawn)},
                        {"typical", typical.front().step},
                        {"spans", std::move(spans)}};
  Json links = Json::array();
  for (const LinkUse& use : LinkUses(trace)) {
    links.push_back({{"from", use.from},
                     {"to", use.to},
                     {"tensors", use.tensors},
                     {"bytes", use.bytes},
                     {"send_us", Rounded(use.send_us)},
                     {"transit_us", Rounded(use.transit_us)}});
  }
  if (!links.empty()) (*run)["links"] = std::move(links);
}

// Where a version did not tell how evaluations went, its figures are those of the last one, at the end.
void AddLastEvaluation(const Summary& summary, Json* run) {
  if (run->contains("evaluations") || !summary.validation_loss.has_value() || summary.steps < 1) return;
  Json last = {{"step", summary.steps}, {"loss", *summary.validation_loss}};
  if (summary.top1.has_value()) last["top1"] = *summary.top1;
  (*run)["evaluations"] = Json::array({std::move(last)});
}

Json RunJson(const ReportRun& report, const std::string& name) {
  const RunRecord& record = report.record;
  // By the names of the file, which other tools rely on too.
  const Json summary = Present(Json::parse(coordinator::ToJson(record.summary)));
  Json run = {{"name", name}, {"path", record.path}, {"job_name", record.job.name()}, {"job", record.job_text}};
  for (const char* part : {"started", "version", "stages", "boundaries", "evaluations"}) {
    if (summary.contains(part) && !summary[part].empty()) run[part] = summary[part];
  }
  AddLastEvaluation(record.summary, &run);
  run["is_text"] = record.figures.contains(kBitsPerByte);
  run["figures"] = record.figures;
  AddCurves(record, &run);
  if (report.trace.has_value()) AddTrace(*report.trace, &run);
  return run;
}

// The end of each path, as short as tells it from the others: "r16-1", or "r16/seed1" and "r8/seed1".
std::vector<std::string> Names(const std::vector<ReportRun>& runs) {
  std::vector<std::vector<std::string>> parts;
  for (const ReportRun& run : runs) {
    const auto path = std::filesystem::path(run.record.path).lexically_normal();
    std::vector<std::string>& of_run = parts.emplace_back();
    for (const auto& part : path) {
      if (!part.empty() && part != "/") of_run.push_back(part.string());
    }
  }
  auto name = [&](std::size_t run, std::size_t length) {
    const std::vector<std::string>& all = parts[run];
    return absl::StrJoin(all.end() - static_cast<std::ptrdiff_t>(std::min(length, all.size())), all.end(), "/");
  };
  std::vector<std::string> names;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    std::size_t length = 1;
    auto taken = [&] {
      for (std::size_t other = 0; other < runs.size(); ++other) {
        if (other != run && name(other, length) == name(run, length)) return true;
      }
      return false;
    };
    while (length < parts[run].size() && taken()) ++length;
    names.push_back(name(run, length));
  }
  return names;
}

}  // namespace

std::string ReportData(const std::vector<ReportRun>& runs, const ReportOptions& options) {
  Json out;
  out["title"] = !options.title.empty() ? options.title
                 : runs.size() == 1     ? runs.front().record.job.name()
                                        : absl::StrCat(runs.size(), " runs");
  out["generated"] = options.generated;
  out["version"] = options.version;
  const std::vector<std::string> names = Names(runs);
  out["runs"] = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) out["runs"].push_back(RunJson(runs[i], names[i]));
  if (runs.size() > 1) {
    std::vector<RunRecord> records;
    for (const ReportRun& run : runs) records.push_back(run.record);
    const Comparison comparison = Compare(GroupRuns(std::move(records)));
    for (std::size_t arm = 0; arm < comparison.arms.size(); ++arm) {
      const std::vector<std::string>& paths = comparison.arms[arm].paths;
      for (Json& run : out["runs"]) {
        if (std::find(paths.begin(), paths.end(), run["path"].get<std::string>()) != paths.end()) run["arm"] = arm;
      }
    }
    out["comparison"] = Json::parse(ComparisonJson(comparison, {}));
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace resbm::coordinator
