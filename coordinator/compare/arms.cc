#include "coordinator/compare/arms.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coordinator/compare/job_fields.h"

namespace resbm::coordinator {
namespace {

bool SameArm(const RunRecord& a, const RunRecord& b) {
  return a.stages == b.stages && JobDifferences(a.job, b.job).empty();
}

bool AllDistinct(const std::vector<Arm>& arms) {
  std::set<std::string> names;
  for (const Arm& arm : arms) names.insert(arm.name);
  return names.size() == arms.size();
}

// What a reader compares comes first.
int Rank(const std::string& path) {
  int rank = 0;
  for (const char* prefix : {"boundary.", "wire.", "cut_point", "optimizer.", "model.", "schedule."}) {
    if (absl::StartsWith(path, prefix)) return rank;
    ++rank;
  }
  return rank;
}

// What an arm can be named by.
struct Namable {
  std::map<std::string, std::string> fields;  // of its job
  int stages = 1;

  // The values of `paths` that the job sets, or, if it sets none, the defaults.
  std::string NameBy(const std::vector<std::string>& paths, bool with_stages) const {
    std::vector<std::string> parts;
    for (const std::string& path : paths) {
      const auto found = fields.find(path);
      if (found != fields.end()) parts.push_back(absl::StrCat(ShortName(path), "=", found->second));
    }
    if (with_stages) parts.push_back(absl::StrCat("stages=", stages));
    if (parts.empty()) {
      for (const std::string& path : paths) {
        parts.push_back(absl::StrCat(ShortName(path), "=", FieldValue(fields, path)));
      }
    }
    return absl::StrJoin(parts, " ");
  }
  bool HasBoundaryAmong(const std::vector<std::string>& paths) const {
    return std::any_of(paths.begin(), paths.end(),
                       [&](const std::string& path) { return Rank(path) == 0 && fields.contains(path); });
  }
};

bool AreToldApart(const std::vector<Namable>& arms, const std::vector<std::string>& by, bool with_stages) {
  std::set<std::string> names;
  for (const Namable& arm : arms) names.insert(arm.NameBy(by, with_stages));
  return names.size() == arms.size() && !names.contains("");
}

// By the fewest fields that tell the arms apart: a name is a column's width, and all that differs is printed below.
void NameArms(std::vector<Arm>* arms) {
  for (Arm& arm : *arms) arm.name = arm.runs.front().job.name();
  if (AllDistinct(*arms)) return;
  const RunRecord& first = arms->front().runs.front();
  std::vector<Namable> namable;
  std::set<std::string> differing;  // fields in which any arm differs from the first
  bool stages_differ = false;
  for (const Arm& arm : *arms) {
    const RunRecord& run = arm.runs.front();
    namable.push_back({JobFields(run.job), run.stages});
    for (const auto& d : JobDifferences(first.job, run.job)) {
      if (d.from != "{}" && d.to != "{}") differing.insert(d.path);
    }
    stages_differ = stages_differ || run.stages != first.stages;
  }
  std::vector<std::string> paths(differing.begin(), differing.end());
  std::stable_sort(paths.begin(), paths.end(),
                   [](const std::string& a, const std::string& b) { return Rank(a) < Rank(b); });
  for (std::size_t i = paths.size(); i-- > 0;) {
    std::vector<std::string> fewer = paths;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    // An arm with a boundary of its own is named by that, not by the lack of others'.
    const bool keeps_boundaries = std::all_of(namable.begin(), namable.end(), [&](const Namable& arm) {
      return arm.HasBoundaryAmong(fewer) || !arm.HasBoundaryAmong(paths);
    });
    if (keeps_boundaries && AreToldApart(namable, fewer, stages_differ)) paths = std::move(fewer);
  }
  const bool with_stages = stages_differ && !AreToldApart(namable, paths, false);
  for (std::size_t i = 0; i < arms->size(); ++i) (*arms)[i].name = namable[i].NameBy(paths, with_stages);
  if (AllDistinct(*arms)) return;
  for (std::size_t i = 0; i < arms->size(); ++i) (*arms)[i].name = absl::StrCat("arm ", i + 1);
}

std::string Seeds(const std::set<std::uint64_t>& seeds) { return absl::StrJoin(seeds, ", "); }

// Parts of a job that must be the same for the difference to be the boundary's.
bool MustBeEqual(const std::string& path) {
  for (const char* prefix : {"data.", "optimizer.", "batch.", "run.epochs", "run.steps", "init_from.", "precision"}) {
    if (absl::StartsWith(path, prefix)) return true;
  }
  return false;
}

}  // namespace

std::set<std::uint64_t> Arm::seeds() const {
  std::set<std::uint64_t> seeds;
  for (const RunRecord& run : runs) seeds.insert(run.job.seed());
  return seeds;
}

std::map<std::uint64_t, double> Arm::figure(absl::string_view name) const {
  std::map<std::uint64_t, double> sums;
  std::map<std::uint64_t, int> counts;
  for (const RunRecord& run : runs) {
    const std::optional<double> value = run.figure(name);
    if (!value) continue;
    sums[run.job.seed()] += *value;
    ++counts[run.job.seed()];
  }
  for (auto& [seed, sum] : sums) sum /= counts[seed];
  return sums;
}

std::vector<Arm> GroupRuns(std::vector<RunRecord> runs) {
  std::vector<Arm> arms;
  for (RunRecord& run : runs) {
    const auto arm = std::find_if(arms.begin(), arms.end(), [&](const Arm& a) { return SameArm(a.runs.front(), run); });
    if (arm != arms.end()) {
      arm->runs.push_back(std::move(run));
    } else {
      arms.emplace_back().runs.push_back(std::move(run));
    }
  }
  NameArms(&arms);
  return arms;
}

std::vector<std::string> Caveats(const std::vector<Arm>& arms) {
  std::vector<std::string> caveats;
  const Arm& baseline = arms.front();
  const RunRecord& first = baseline.runs.front();
  for (const Arm& arm : arms) {
    const RunRecord& run = arm.runs.front();
    for (const FieldDifference& d : JobDifferences(first.job, run.job)) {
      if (!MustBeEqual(d.path)) continue;
      caveats.push_back(
          absl::StrFormat("%s: %s is %s, not %s as for %s", arm.name, d.path, d.to, d.from, baseline.name));
    }
    for (const RunRecord& other : arm.runs) {
      if (other.figure("steps") != first.figure("steps")) {
        caveats.push_back(absl::StrFormat("%s: %s has %.0f steps, %s has %.0f", arm.name, other.path,
                                          other.figure("steps").value_or(0), first.path,
                                          first.figure("steps").value_or(0)));
      }
      if (other.devices != first.devices && other.stages == first.stages) {
        caveats.push_back(absl::StrFormat("%s: %s ran on %s, %s on %s: times do not compare", arm.name, other.path,
                                          absl::StrJoin(other.devices, ", "), first.path,
                                          absl::StrJoin(first.devices, ", ")));
      }
      if (const double skipped = other.figure("skipped_steps").value_or(0); skipped > 0) {
        caveats.push_back(
            absl::StrFormat("%s: %s skipped %.0f steps (values that are not finite)", arm.name, other.path, skipped));
      }
      const auto within = JobDifferences(run.job, other.job);
      if (!within.empty() || other.stages != run.stages) {
        caveats.push_back(absl::StrFormat("%s: %s and %s differ in more than the seed (%s)", arm.name, run.path,
                                          other.path, within.empty() ? "stages" : within.front().path));
      }
    }
    // Of means what is not there is left out: those that failed would make an arm look better.
    for (const char* figure : {"validation_loss", "top1"}) {
      const auto lacks = [figure](const RunRecord& one) { return !one.figure(figure).has_value(); };
      const auto failed = std::count_if(arm.runs.begin(), arm.runs.end(), lacks);
      if (failed == 0 || failed == static_cast<std::ptrdiff_t>(arm.runs.size())) continue;
      const RunRecord& one = *std::find_if(arm.runs.begin(), arm.runs.end(), lacks);
      caveats.push_back(absl::StrFormat("%s: %s%s no %s (not finite, or not measured): left out of its mean", arm.name,
                                        one.path, failed > 1 ? absl::StrCat(" and ", failed - 1, " more have") : " has",
                                        figure));
      break;
    }
    if (arm.seeds() != baseline.seeds()) {
      caveats.push_back(absl::StrFormat("%s: seeds %s, not %s as for %s", arm.name, Seeds(arm.seeds()),
                                        Seeds(baseline.seeds()), baseline.name));
    }
    if (arm.seeds().size() < arm.runs.size()) {
      caveats.push_back(absl::StrFormat("%s: %d runs have only %d seed%s; a seed counts once", arm.name, arm.runs.size(),
                                        arm.seeds().size(), arm.seeds().size() == 1 ? "" : "s"));
    }
  }
  return caveats;
}

std::vector<std::string> DescribeDifferences(const std::vector<Arm>& arms) {
  std::vector<std::string> lines;
  for (const Arm& arm : arms) {
    if (&arm == &arms.front()) continue;
    for (const FieldDifference& d : JobDifferences(arms.front().runs.front().job, arm.runs.front().job)) {
      if (d.from == "{}" || d.to == "{}") continue;
      lines.push_back(absl::StrFormat("%s: %s = %s (baseline: %s)", arm.name, d.path, d.to, d.from));
    }
    if (arm.runs.front().stages != arms.front().runs.front().stages) {
      lines.push_back(absl::StrFormat("%s: %d stages (baseline: %d)", arm.name, arm.runs.front().stages,
                                      arms.front().runs.front().stages));
    }
  }
  return lines;
}

}  // namespace resbm::coordinator
