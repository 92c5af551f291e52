#include "coordinator/compare/gate.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace resbm::coordinator {
namespace {

struct Kind {
  const char* name;
  const char* figure;
  // What counts as worse: +1 a rise, -1 a drop.
  double worse;
  // Of the figure in messages and in an absolute limit.
  double scale;
  bool percent;  // of the baseline's
  const char* unit;
};

constexpr Kind kKinds[] = {
    {"top1_drop", "top1", -1, 100, false, " points"},
    {"validation_loss_rise", "validation_loss", 1, 1, false, ""},
    {"validation_loss_rise_percent", "validation_loss", 1, 1, true, " %"},
    {"samples_per_second_drop", "samples_per_second", -1, 1, true, " %"},
    {"peak_memory_rise", kPeakMemory, 1, 1e-6, true, " %"},
    {"bytes_rise", kBytesPerStep, 1, 1, true, " %"},
};

const Kind* Find(absl::string_view name) {
  for (const Kind& kind : kKinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

GateResult Check(const Gate& gate, const Kind& kind, const ComparedArm& baseline, const ComparedArm& arm) {
  GateResult result;
  result.gate = gate;
  result.arm = arm.name;
  std::string figure = kind.figure;
  if (figure == kBytesPerStep && !(baseline.mean(figure) && arm.mean(figure))) figure = kPlannedBytes;
  const std::optional<double> from = baseline.mean(figure), to = arm.mean(figure);
  if (!from || !to || (kind.percent && *from == 0)) {
    result.text = absl::StrFormat("%s: %s cannot be checked: %s has no %s", arm.name, gate.name,
                                  from && *from != 0 ? arm.name : baseline.name, figure);
    return result;
  }
  for (const ComparedArm* side : {&baseline, &arm}) {
    const int count = side->figures.at(figure).count, seeds = static_cast<int>(side->seeds.size());
    if (count == seeds) continue;
    result.text = absl::StrFormat("%s: %s cannot be checked: %d of the %d seeds of %s have no %s", arm.name, gate.name,
                                  seeds - count, seeds, side->name, figure);
    return result;
  }
  result.enough_seeds = std::min(baseline.seeds.size(), arm.seeds.size()) >= kSeedsForVerdict;
  const double difference = kind.worse * (*to - *from);
  const double worse = kind.percent ? 100 * difference / std::abs(*from) : kind.scale * difference;
  result.passed = worse <= gate.limit;
  result.text = absl::StrFormat("%s: %s %.4g%s (%.6g -> %.6g), limit %.4g%s", arm.name, gate.name, worse, kind.unit,
                                kind.scale * *from, kind.scale * *to, gate.limit, kind.unit);
  return result;
}

}  // namespace

std::vector<std::string> GateNames() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  return names;
}

absl::StatusOr<Gate> ParseGate(absl::string_view text) {
  const std::size_t equals = text.find('=');
  Gate gate;
  gate.name = std::string(text.substr(0, equals));
  if (Find(gate.name) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--gate %s: no gate \"%s\"; there are %s", text, gate.name, absl::StrJoin(GateNames(), ", ")));
  }
  if (equals == absl::string_view::npos || !absl::SimpleAtod(text.substr(equals + 1), &gate.limit) ||
      !std::isfinite(gate.limit)) {
    return absl::InvalidArgumentError(absl::StrFormat("--gate %s: expected a limit, as in %s=0.5", text, gate.name));
  }
  return gate;
}

std::vector<GateResult> CheckGates(const Comparison& comparison, const std::vector<Gate>& gates) {
  std::vector<GateResult> results;
  for (const Gate& gate : gates) {
    for (const ComparedArm& arm : comparison.arms) {
      if (&arm != &comparison.baseline()) results.push_back(Check(gate, *Find(gate.name), comparison.baseline(), arm));
    }
  }
  return results;
}

}  // namespace resbm::coordinator
