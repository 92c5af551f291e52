#include "coordinator/sweep/advice.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coordinator/compare/run_record.h"
#include "coordinator/report/columns.h"

namespace resbm::coordinator {
namespace {

double BytesOf(const ComparedArm& arm) { return arm.mean(kPlannedBytes).value_or(0); }

const char* Unit(const Loss& loss) { return loss.points ? "points" : "% of the loss"; }

std::string WithoutMinusZero(double value) {
  const std::string text = absl::StrFormat("%.2f", value);
  return text == "-0.00" ? "0.00" : text;
}

std::string Text(const Loss& loss) {
  std::string text = WithoutMinusZero(loss.mean);
  if (loss.margin) absl::StrAppendFormat(&text, " +- %.2f", *loss.margin);
  return absl::StrCat(text, " ", Unit(loss));
}

// Candidates in order of their bytes, fewest last.
std::vector<const ComparedArm*> ByBytes(const SweepOutcome& outcome) {
  std::vector<const ComparedArm*> arms;
  for (const ComparedArm& arm : outcome.comparison.arms) {
    if (&arm != &outcome.comparison.baseline() && !outcome.is_stopped(arm.name)) arms.push_back(&arm);
  }
  std::stable_sort(arms.begin(), arms.end(), [](const auto* a, const auto* b) { return BytesOf(*a) > BytesOf(*b); });
  return arms;
}

bool IsRatio(const SweepOutcome& outcome) { return outcome.field == "boundary.ratio"; }

// What may make up for a ratio.
const char* MoreOf(const SweepOutcome& outcome) {
  if (outcome.comparison.baseline().figures.contains(kBitsPerByte)) {
    return "try another boundary.kind (IN_BRANCH, ADAPTER) or boundary.projection (TRUNCATE, ORTHOGONAL, LEARNED)";
  }
  return "give the low-dimensional part more: boundary.low_dim.depth, then boundary.low_dim.width, then "
         "boundary.low_dim.attention";
}

std::string Note(const SweepOutcome& outcome, const ComparedArm& arm) {
  if (&arm == &outcome.comparison.baseline()) return "baseline";
  for (const auto& stopped : outcome.stopped) {
    if (stopped.name == arm.name) return "stopped";
  }
  const std::optional<Loss> loss = LossOf(outcome.comparison, arm);
  if (!loss) return "not measured";
  if (loss->seeds < kSeedsForVerdict) return "no verdict";
  // The interval against the budget, not against zero: "not worse" is what is asked.
  if (loss->mean + *loss->margin <= outcome.budget) return "within";
  if (loss->mean - *loss->margin > outcome.budget) return "beyond";
  return loss->mean <= outcome.budget ? "within?" : "beyond?";
}

}  // namespace

bool SweepOutcome::is_stopped(const std::string& arm) const {
  return std::any_of(stopped.begin(), stopped.end(), [&](const Stopped& s) { return s.name == arm; });
}

std::optional<Loss> LossOf(const Comparison& comparison, const ComparedArm& arm) {
  const std::optional<Quality> quality = CommonQuality(comparison.baseline(), comparison.baseline());
  if (!quality) return std::nullopt;
  const auto found = arm.differences.find(quality->figure);
  if (found == arm.differences.end()) return std::nullopt;
  Loss loss;
  loss.points = quality->unit == "points";
  loss.seeds = found->second.seeds;
  const double from = comparison.baseline().mean(quality->figure).value_or(0);
  if (!loss.points && from == 0) return std::nullopt;
  const double scale = loss.points ? -100 : 100 / std::abs(from);
  loss.mean = scale * found->second.mean;
  if (found->second.margin) loss.margin = std::abs(scale) * *found->second.margin;
  return loss;
}

const ComparedArm* Choose(const SweepOutcome& outcome) {
  const ComparedArm* chosen = nullptr;
  double lost = 0;  // by the chosen one
  for (const ComparedArm* arm : ByBytes(outcome)) {
    const std::optional<Loss> loss = LossOf(outcome.comparison, *arm);
    if (!loss || loss->mean > outcome.budget) continue;
    if (chosen != nullptr && BytesOf(*arm) == BytesOf(*chosen) && loss->mean >= lost) continue;
    chosen = arm;
    lost = loss->mean;
  }
  return chosen;
}

std::string SweepTable(const SweepOutcome& outcome, const Terminal& terminal) {
  const Comparison& c = outcome.comparison;
  const std::optional<Quality> of_baseline = CommonQuality(c.baseline(), c.baseline());
  const std::string figure = of_baseline ? of_baseline->figure : "validation_loss";
  const bool points = figure == "top1";
  const double scale = points ? 100 : 1;
  const int decimals = points ? 2 : 4;
  std::vector<TableRow> rows = {{"arm", "seeds", "bytes/sample", "vs fp16", points ? "top-1 %" : "test loss",
                                 "min..max", points ? "lost" : "lost %", "+- 95 %", "budget"}};
  for (const ComparedArm& arm : c.arms) {
    const auto found = arm.figures.find(figure);
    const Spread* quality = found == arm.figures.end() ? nullptr : &found->second;
    const auto bytes = arm.mean(kPlannedBytes), fp16 = arm.mean(kPlannedFp16Bytes);
    const std::optional<Loss> loss = &arm == &c.baseline() ? std::nullopt : LossOf(c, arm);
    auto number = [&](double value) { return absl::StrFormat("%.*f", decimals, scale * value); };
    rows.push_back(
        {arm.name.size() > 16 ? absl::StrCat(arm.name.substr(0, 13), "...") : arm.name, absl::StrCat(arm.seeds.size()),
         bytes ? HumanBytes(*bytes) : "-", bytes && fp16 && *bytes > 0 ? absl::StrFormat("%.1fx", *fp16 / *bytes) : "-",
         quality ? number(quality->mean) : "-",
         quality && quality->count > 1 ? absl::StrCat(number(quality->min), "..", number(quality->max)) : "-",
         loss ? WithoutMinusZero(loss->mean) : "-", loss && loss->margin ? absl::StrFormat("%.2f", *loss->margin) : "-",
         Note(outcome, arm)});
  }
  return FormatColumns(rows, 1, terminal);
}

std::vector<std::string> Advise(const SweepOutcome& outcome) {
  std::vector<std::string> advice;
  const std::vector<const ComparedArm*> arms = ByBytes(outcome);
  int seeds = static_cast<int>(outcome.comparison.baseline().seeds.size());
  for (const ComparedArm* arm : arms) seeds = std::min(seeds, static_cast<int>(arm->seeds.size()));
  const bool hint = seeds < kSeedsForVerdict;
  if (hint) {
    advice.push_back(absl::StrFormat("no verdict: %d seed%s an arm, %d are needed (--seeds %d); a hint only:", seeds,
                                     seeds == 1 ? "" : "s", kSeedsForVerdict, kSeedsForVerdict));
  }
  const bool complete = outcome.untried.empty();
  if (!complete) {
    advice.push_back(absl::StrCat("not trained: ", absl::StrJoin(outcome.untried, ", "), "; of those that were:"));
  }
  const ComparedArm* chosen = Choose(outcome);
  if (chosen == nullptr) {
    const std::string budget = absl::StrFormat("%.4g", outcome.budget);
    advice.push_back(absl::StrCat("no arm stays within ", budget, " of ", outcome.comparison.baseline().name));
    if (complete && !arms.empty() && IsRatio(outcome)) {
      advice.push_back(absl::StrCat("lower the ratio below that of ", arms.front()->name, ", or ", MoreOf(outcome)));
    }
  } else {
    const Loss loss = *LossOf(outcome.comparison, *chosen);
    const auto fp16 = chosen->mean(kPlannedFp16Bytes);
    Loss shown = loss;
    shown.mean = std::abs(loss.mean);
    std::string text = absl::StrCat(chosen->name, loss.mean < 0 ? ": gains " : ": loses ", Text(shown), " of ",
                                    outcome.comparison.baseline().name);
    if (fp16 && BytesOf(*chosen) > 0) {
      absl::StrAppendFormat(&text, ", sends %.1f times less than fp16", *fp16 / BytesOf(*chosen));
    }
    const bool same_bytes = arms.size() > 1 && BytesOf(*arms.front()) == BytesOf(*arms.back());
    advice.push_back(absl::StrCat(text, same_bytes ? "; the best of them" : "; the fewest bytes within the budget"));
    if (!hint && loss.margin && *loss.margin > std::abs(outcome.budget)) {
      advice.push_back(absl::StrFormat(
          "but the noise of +- %.2f is larger than the budget: this sweep cannot tell the arms apart. Train longer "
          "(run.epochs), on more data (--fraction) or with more seeds",
          *loss.margin));
    } else if (!hint && loss.margin && loss.mean + *loss.margin > outcome.budget) {
      advice.push_back("its noise reaches beyond the budget: more seeds, more data or a longer run would tell");
    }
    if (chosen == arms.back() && outcome.stopped.empty()) {
      if (complete && IsRatio(outcome)) {
        advice.push_back("it is the largest ratio of this sweep: raise it further and sweep again");
      }
    } else if (IsRatio(outcome)) {
      advice.push_back(absl::StrCat("to go beyond it: ", MoreOf(outcome),
                                    "; or a longer run (short ones exaggerate the cost); or another cut point"));
    }
  }
  for (const auto& stopped : outcome.stopped) {
    advice.push_back(absl::StrCat(stopped.name, " did not converge and was stopped: ",
                                  IsRatio(outcome) ? "lower the ratio stepwise" : "go back stepwise",
                                  ", or a lower learning rate with warm-up, or optimizer.clip_norm"));
  }
  for (const ComparedArm* arm : arms) {
    if (arm->mean(kLossSpikes).value_or(0) >= 1) {
      advice.push_back(absl::StrCat(arm->name, " has spikes in its loss: set optimizer.clip_norm, or lower the rate"));
    }
  }
  if (outcome.fraction < 1) {
    advice.push_back(
        absl::StrFormat("this was %.3g %% of the training data: confirm on all of it with `resbm train` and "
                        "`resbm compare` before you rely on it",
                        100 * outcome.fraction));
  }
  return advice;
}

}  // namespace resbm::coordinator
