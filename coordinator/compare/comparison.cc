#include "coordinator/compare/comparison.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace resbm::coordinator {
namespace {

constexpr int kCourseParts = 8;

// Runs of one arm have the same steps, or there is a caveat; then parts go by share of the run.
std::vector<CurvePoint> MeanCourse(const Arm& arm) {
  std::vector<CurvePoint> mean;
  int runs = 0;
  for (const RunRecord& run : arm.runs) {
    const std::vector<CurvePoint> course = Course(run.curve, kCourseParts);
    if (course.empty()) continue;
    if (runs == 0) {
      mean = course;
    } else if (course.size() == mean.size()) {
      for (std::size_t i = 0; i < course.size(); ++i) mean[i].loss += course[i].loss;
    } else {
      continue;
    }
    ++runs;
  }
  for (CurvePoint& point : mean) point.loss /= runs;
  return mean;
}

ComparedArm Summarized(const Arm& arm) {
  ComparedArm out;
  out.name = arm.name;
  out.seeds = arm.seeds();
  out.stages = arm.runs.front().stages;
  std::set<std::string> names;
  for (const RunRecord& run : arm.runs) {
    out.paths.push_back(run.path);
    for (const auto& [name, value] : run.figures) names.insert(name);
    out.spikes.insert(run.spikes.begin(), run.spikes.end());
  }
  for (const std::string& name : names) {
    std::vector<double> of_seeds;
    for (const auto& [seed, value] : arm.figure(name)) of_seeds.push_back(value);
    if (const auto spread = SpreadOf(of_seeds)) out.figures[name] = *spread;
  }
  out.course = MeanCourse(arm);
  return out;
}

std::string Verdict(const ComparedArm& baseline, const ComparedArm& arm) {
  const std::optional<Quality> quality = CommonQuality(baseline, arm);
  if (!quality) return absl::StrFormat("%s: no accuracy or loss in common with %s", arm.name, baseline.name);
  const auto found = arm.differences.find(quality->figure);
  if (found == arm.differences.end()) return absl::StrFormat("%s: no figures to compare", arm.name);
  const Difference& difference = found->second;
  const double scale = std::abs(quality->scale);
  const bool points = quality->unit == "points";
  std::string text = absl::StrFormat("%s: %s %+.*f%s", arm.name, quality->figure, points ? 2 : 4,
                                     scale * difference.mean, points ? " points" : "");
  if (difference.seeds < kSeedsForVerdict) {
    return absl::StrFormat("%s; no verdict: %d seed%s, %d are needed", text, difference.seeds,
                           difference.seeds == 1 ? "" : "s", kSeedsForVerdict);
  }
  absl::StrAppendFormat(&text, " +- %.*f (95 %%, %d seeds%s): ", points ? 2 : 4, scale * *difference.margin,
                        difference.seeds, difference.paired ? ", paired" : "");
  if (std::abs(difference.mean) <= *difference.margin) return text + "no difference beyond the noise";
  return text + (difference.mean * quality->scale > 0 ? "better" : "worse");
}

}  // namespace

std::optional<double> ComparedArm::mean(absl::string_view figure) const {
  const auto found = figures.find(std::string(figure));
  return found == figures.end() ? std::nullopt : std::optional<double>(found->second.mean);
}

std::optional<Quality> CommonQuality(const ComparedArm& a, const ComparedArm& b) {
  const Quality loss = {"validation_loss", "", -1};
  if (a.figures.contains(kBitsPerByte) && b.figures.contains(kBitsPerByte)) return loss;
  for (const Quality& quality :
       {Quality{"top1", "points", 100}, loss, Quality{"final_loss", "", -1}}) {
    if (a.figures.contains(quality.figure) && b.figures.contains(quality.figure)) return quality;
  }
  return std::nullopt;
}

Comparison Compare(const std::vector<Arm>& arms) {
  Comparison comparison;
  for (const Arm& arm : arms) {
    ComparedArm compared = Summarized(arm);
    if (&arm != &arms.front()) {
      for (const auto& [name, spread] : compared.figures) {
        const auto difference = DifferenceOf(arms.front().figure(name), arm.figure(name));
        if (difference) compared.differences[name] = *difference;
      }
      comparison.verdicts.push_back(Verdict(comparison.arms.front(), compared));
    }
    comparison.arms.push_back(std::move(compared));
  }
  comparison.differences = DescribeDifferences(arms);
  comparison.caveats = Caveats(arms);
  return comparison;
}

}  // namespace resbm::coordinator
