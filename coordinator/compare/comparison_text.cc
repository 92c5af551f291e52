#include "coordinator/compare/comparison_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "coordinator/report/columns.h"
#include "nlohmann/json.hpp"

namespace resbm::coordinator {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kNameColumns = 18;
constexpr std::size_t kMaxColumns = 100;

std::string Short(const std::string& text, std::size_t columns) {
  return text.size() <= columns ? text : absl::StrCat(text.substr(0, columns - 3), "...");
}

std::string Name(const ComparedArm& arm) { return Short(arm.name, kNameColumns); }

// Mean and deviation of a figure, "-" when it is not there.
std::string Cell(const ComparedArm& arm, const std::string& figure, double scale, int decimals) {
  const auto found = arm.figures.find(figure);
  if (found == arm.figures.end()) return "-";
  const Spread& s = found->second;
  if (s.count < 2) return absl::StrFormat("%.*f", decimals, scale * s.mean);
  return absl::StrFormat("%.*f +- %.*f", decimals, scale * s.mean, decimals, scale * s.deviation);
}

std::string Mean(const ComparedArm& arm, const std::string& figure, double scale, int decimals) {
  const std::optional<double> mean = arm.mean(figure);
  return mean ? absl::StrFormat("%.*f", decimals, scale * *mean) : "-";
}

std::string Range(const ComparedArm& arm, const std::string& figure, double scale, int decimals) {
  const auto found = arm.figures.find(figure);
  if (found == arm.figures.end() || found->second.count < 2) return "-";
  return absl::StrFormat("%.*f..%.*f", decimals, scale * found->second.min, decimals, scale * found->second.max);
}

std::string SignedDifference(const ComparedArm& arm, const std::string& figure, double scale, int decimals) {
  const auto found = arm.differences.find(figure);
  return found == arm.differences.end() ? "-" : absl::StrFormat("%+.*f", decimals, scale * found->second.mean);
}

std::string PercentDifference(const Comparison& c, const ComparedArm& arm, const std::string& figure,
                              int decimals = 1) {
  const std::optional<double> from = c.baseline().mean(figure), to = arm.mean(figure);
  if (&arm == &c.baseline() || !from || !to || *from == 0) return "-";
  return absl::StrFormat("%+.*f %%", decimals, 100 * (*to - *from) / *from);
}

// "12.0x": how many times smaller than uncompressed fp16.
std::string TimesSmaller(const ComparedArm& arm, const std::string& bytes, const std::string& uncompressed) {
  const std::optional<double> small = arm.mean(bytes), large = arm.mean(uncompressed);
  return small && large && *small > 0 ? absl::StrFormat("%.1fx", *large / *small) : "-";
}

std::string Bytes(const ComparedArm& arm, const std::string& figure) {
  const std::optional<double> mean = arm.mean(figure);
  return mean ? HumanBytes(*mean) : "-";
}

bool IsText(const Comparison& c) { return c.baseline().figures.contains(kBitsPerByte); }

std::string QualityTable(const Comparison& c, const Terminal& terminal) {
  if (IsText(c)) {
    std::vector<TableRow> rows = {
        {"arm", "seeds", "test loss", "min..max", "vs base", "bits/byte", "perplexity", "top-1 %"}};
    for (const ComparedArm& arm : c.arms) {
      rows.push_back({Name(arm), absl::StrCat(arm.seeds.size()), Cell(arm, "validation_loss", 1, 4),
                      Range(arm, "validation_loss", 1, 3), PercentDifference(c, arm, "validation_loss", 2),
                      Mean(arm, kBitsPerByte, 1, 4), Mean(arm, "perplexity", 1, 3), Mean(arm, "top1", 100, 2)});
    }
    return FormatColumns(rows, 1, terminal);
  }
  std::vector<TableRow> rows = {{"arm", "seeds", "final loss", "validation loss", "top-1 %", "min..max", "points"}};
  for (const ComparedArm& arm : c.arms) {
    rows.push_back({Name(arm), absl::StrCat(arm.seeds.size()), Cell(arm, "final_loss", 1, 4),
                    Cell(arm, "validation_loss", 1, 4), Cell(arm, "top1", 100, 2), Range(arm, "top1", 100, 2),
                    SignedDifference(arm, "top1", 100, 2)});
  }
  return FormatColumns(rows, 1, terminal);
}

std::string SpeedTable(const Comparison& c, const Terminal& terminal) {
  const std::string rate = IsText(c) ? "tokens_per_second" : "samples_per_second";
  const int decimals = IsText(c) ? 0 : 1;
  std::vector<TableRow> rows = {{"arm", "stages", IsText(c) ? "tokens/s" : "samples/s", "vs base", "step s", "epoch s",
                                 "wait", "send", "bubble", "busy"}};
  for (const ComparedArm& arm : c.arms) {
    rows.push_back({Name(arm), absl::StrCat(arm.stages), Cell(arm, rate, 1, decimals), PercentDifference(c, arm, rate),
                    Mean(arm, "step_seconds_median", 1, 4), Mean(arm, "epoch_seconds", 1, 1),
                    Mean(arm, "communication_share_exposed", 100, 1), Mean(arm, "communication_share_total", 100, 1),
                    Mean(arm, "bubble_share", 100, 1), Mean(arm, kUtilization, 100, 1)});
  }
  return FormatColumns(rows, 1, terminal);
}

std::string BytesTable(const Comparison& c, const Terminal& terminal) {
  std::vector<TableRow> rows = {
      {"arm", "a step", "vs base", "vs fp16", "a sample", "vs base", "vs fp16", "parameters", "vs base"}};
  for (const ComparedArm& arm : c.arms) {
    rows.push_back({Name(arm), Bytes(arm, kBytesPerStep), PercentDifference(c, arm, kBytesPerStep),
                    TimesSmaller(arm, kBytesPerStep, kFp16BytesPerStep), Bytes(arm, kPlannedBytes),
                    PercentDifference(c, arm, kPlannedBytes), TimesSmaller(arm, kPlannedBytes, kPlannedFp16Bytes),
                    Mean(arm, kParameters, 1, 0), PercentDifference(c, arm, kParameters)});
  }
  return FormatColumns(rows, 1, terminal);
}

std::string StageTable(const Comparison& c, const Terminal& terminal) {
  std::vector<TableRow> rows = {
      {"arm", "stage", "peak MB", "vs base", "weights", "optimizer", "activations", "buffers", "busy %"}};
  for (const ComparedArm& arm : c.arms) {
    for (int s = 0; s < arm.stages; ++s) {
      const std::string stage = absl::StrCat("stages.", s, ".");
      const std::string memory = absl::StrCat(stage, "peak_memory_bytes.");
      const bool alike = arm.stages == c.baseline().stages;
      rows.push_back({Name(arm), absl::StrCat(s), Mean(arm, memory + "total", 1e-6, 1),
                      alike ? PercentDifference(c, arm, memory + "total") : "-", Mean(arm, memory + "weights", 1e-6, 1),
                      Mean(arm, memory + "optimizer", 1e-6, 1), Mean(arm, memory + "activations", 1e-6, 1),
                      Mean(arm, memory + "buffers", 1e-6, 1), Cell(arm, stage + "utilization", 100, 1)});
    }
  }
  return FormatColumns(rows, 1, terminal);
}

// Arms of one length share a heading of steps.
std::string CourseTable(const Comparison& c, const Terminal& terminal) {
  std::string out;
  TableRow heading;
  std::vector<TableRow> rows;
  auto flush = [&] {
    if (!rows.empty()) absl::StrAppend(&out, FormatColumns(rows, 1, terminal));
    rows.clear();
  };
  for (const ComparedArm& arm : c.arms) {
    if (arm.course.empty()) continue;
    TableRow steps = {"to step"}, losses = {Name(arm)};
    for (const CurvePoint& point : arm.course) {
      steps.push_back(absl::StrCat(point.step));
      losses.push_back(absl::StrFormat("%.4f", point.loss));
    }
    if (rows.empty() || steps != heading) {
      flush();
      heading = steps;
      rows.push_back(steps);
    }
    rows.push_back(losses);
  }
  flush();
  return out;
}

std::string SignalTable(const Comparison& c, const Terminal& terminal) {
  std::vector<TableRow> rows = {{"arm", "slope", "spikes", "at steps"}};
  for (const ComparedArm& arm : c.arms) {
    rows.push_back({Name(arm), Mean(arm, kLossSlope, 1, 4), Mean(arm, kLossSpikes, 1, 1),
                    Short(absl::StrJoin(arm.spikes, " "), 40)});
  }
  return FormatColumns(rows, 1, terminal);
}

std::string FigureTable(const Comparison& c, const Terminal& terminal) {
  std::set<std::string> names;
  for (const ComparedArm& arm : c.arms) {
    for (const auto& [name, spread] : arm.figures) names.insert(name);
  }
  std::vector<TableRow> rows = {{"figure", "arm", "mean", "deviation", "difference"}};
  for (const std::string& name : names) {
    for (const ComparedArm& arm : c.arms) {
      const auto found = arm.figures.find(name);
      if (found == arm.figures.end()) continue;
      const auto difference = arm.differences.find(name);
      rows.push_back({&arm == &c.arms.front() ? Short(name, 46) : "", Short(arm.name, 12),
                      absl::StrFormat("%.6g", found->second.mean),
                      found->second.count > 1 ? absl::StrFormat("%.2g", found->second.deviation) : "-",
                      difference == arm.differences.end() ? "-" : absl::StrFormat("%+.4g", difference->second.mean)});
      if (rows.back()[0].empty() && !c.arms.front().figures.contains(name)) rows.back()[0] = Short(name, 46);
    }
  }
  return FormatColumns(rows, 2, terminal);
}

void AppendList(const std::string& heading, const std::vector<std::string>& lines, const Terminal& terminal,
                std::string* out) {
  if (lines.empty()) return;
  absl::StrAppend(out, "\n", Bold(terminal, heading), "\n");
  for (const std::string& line : lines) absl::StrAppend(out, Indented(line, kMaxColumns));
}

std::vector<std::string> GateLines(const std::vector<GateResult>& gates) {
  std::vector<std::string> lines;
  bool few = false;
  for (const GateResult& gate : gates) {
    lines.push_back(absl::StrCat(gate.passed ? "ok      " : "FAILED  ", gate.text));
    few = few || !gate.enough_seeds;
  }
  if (few) {
    lines.push_back(absl::StrFormat(
        "some arms have less than %d seeds: gates hold on their means, within a noise that is not known",
        kSeedsForVerdict));
  }
  return lines;
}

std::string CsvText(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

std::string FormatComparison(const Comparison& c, const std::vector<GateResult>& gates, bool every_figure,
                             const Terminal& terminal) {
  const char* against = IsText(c) ? "Quality (loss a byte; baseline: " : "Quality (points: top-1 less that of ";
  std::string out = absl::StrCat(against, Name(c.baseline()), IsText(c) ? ")\n" : ", the baseline)\n",
                                 QualityTable(c, terminal));
  absl::StrAppend(&out, "\nSpeed (waiting for links, sending, bubble, computing: % of the stages' time)\n",
                  SpeedTable(c, terminal));
  absl::StrAppend(&out, "\nBytes (a step: at the cuts, both directions, with metadata; a sample: at all cut points)\n",
                  BytesTable(c, terminal));
  absl::StrAppend(&out, "\nStages (peak memory in MB of 10^6 bytes)\n", StageTable(c, terminal));
  absl::StrAppend(&out, "\nTraining loss (mean of the steps since the column before)\n", CourseTable(c, terminal));
  absl::StrAppend(&out, "\nSignals (slope of the loss per 100 steps, second half; spikes a run)\n",
                  SignalTable(c, terminal));
  if (every_figure) absl::StrAppend(&out, "\nEvery figure\n", FigureTable(c, terminal));
  AppendList("What differs in the jobs", c.differences, terminal, &out);
  AppendList("Beware", c.caveats, terminal, &out);
  AppendList("Verdict", c.verdicts, terminal, &out);
  AppendList("Gates", GateLines(gates), terminal, &out);
  return out;
}

std::string ComparisonCsv(const Comparison& comparison) {
  std::string out = "arm,figure,runs,mean,deviation,min,max,difference,margin95\n";
  for (const ComparedArm& arm : comparison.arms) {
    for (const auto& [name, s] : arm.figures) {
      absl::StrAppendFormat(&out, "%s,%s,%d,%.10g,%.6g,%.10g,%.10g", CsvText(arm.name), CsvText(name), s.count, s.mean,
                            s.deviation, s.min, s.max);
      const auto found = arm.differences.find(name);
      const bool there = found != arm.differences.end();
      absl::StrAppend(&out, ",", there ? absl::StrFormat("%.10g", found->second.mean) : "", ",",
                      there && found->second.margin ? absl::StrFormat("%.6g", *found->second.margin) : "", "\n");
    }
  }
  return out;
}

std::string ComparisonJson(const Comparison& comparison, const std::vector<GateResult>& gates) {
  Json out = {{"arms", Json::array()}};
  for (const ComparedArm& arm : comparison.arms) {
    Json figures = Json::object();
    for (const auto& [name, s] : arm.figures) {
      Json figure = {{"runs", s.count}, {"mean", s.mean}, {"deviation", s.deviation}, {"min", s.min}, {"max", s.max}};
      const auto found = arm.differences.find(name);
      if (found != arm.differences.end()) {
        figure["difference"] = found->second.mean;
        figure["margin95"] = found->second.margin ? Json(*found->second.margin) : Json(nullptr);
        figure["paired"] = found->second.paired;
      }
      figures[name] = std::move(figure);
    }
    Json course = Json::array();
    for (const CurvePoint& point : arm.course) course.push_back({{"step", point.step}, {"loss", point.loss}});
    out["arms"].push_back({{"name", arm.name},
                           {"runs", arm.paths},
                           {"seeds", arm.seeds},
                           {"stages", arm.stages},
                           {"figures", std::move(figures)},
                           {"course", std::move(course)},
                           {"spikes", arm.spikes}});
  }
  out["differences"] = comparison.differences;
  out["caveats"] = comparison.caveats;
  out["verdicts"] = comparison.verdicts;
  out["gates"] = Json::array();
  for (const GateResult& gate : gates) {
    out["gates"].push_back({{"name", gate.gate.name},
                            {"limit", gate.gate.limit},
                            {"arm", gate.arm},
                            {"passed", gate.passed},
                            {"text", gate.text}});
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace resbm::coordinator
