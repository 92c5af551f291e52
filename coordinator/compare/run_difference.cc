#include "coordinator/compare/run_difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/base/safetensors.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// NaN is equal to itself here.
bool SameBits(double a, double b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

bool Same(const std::optional<double>& a, const std::optional<double>& b) {
  return a.has_value() == b.has_value() && (!a || SameBits(*a, *b));
}

double Relative(double a, double b) {
  const double largest = std::max(std::abs(a), std::abs(b));
  return largest > 0 ? std::abs(a - b) / largest : 0;
}

template <typename T>
TensorDifference InFigures(const SafetensorsEntry& a, const SafetensorsEntry& b) {
  double largest = 0, apart = 0;
  std::int64_t different = 0;
  const std::size_t count = a.data.size() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    T x, y;
    std::memcpy(&x, a.data.data() + i * sizeof(T), sizeof(T));
    std::memcpy(&y, b.data.data() + i * sizeof(T), sizeof(T));
    if (std::memcmp(&x, &y, sizeof(T)) != 0) ++different;
    largest = std::max(largest, std::abs(static_cast<double>(x)));
    const double gap = std::abs(static_cast<double>(x) - static_cast<double>(y));
    // max() would drop a NaN.
    apart = std::isnan(gap) ? kInfinity : std::max(apart, gap);
  }
  const double relative = apart == 0 ? 0 : largest > 0 ? apart / largest : kInfinity;
  return {a.name, absl::StrFormat("max |a - b| / max |a| = %.2g, %d of %d values", relative, different, count),
          relative};
}

TensorDifference Differs(const SafetensorsEntry& a, const SafetensorsEntry& b) {
  if (a.dtype != b.dtype) return {a.name, absl::StrFormat("%s in one, %s in the other", a.dtype, b.dtype), kInfinity};
  if (a.shape != b.shape) {
    return {
        a.name,
        absl::StrFormat("[%s] in one, [%s] in the other", absl::StrJoin(a.shape, ", "), absl::StrJoin(b.shape, ", ")),
        kInfinity};
  }
  if (a.dtype == "F32") return InFigures<float>(a, b);
  if (a.dtype == "F64") return InFigures<double>(a, b);
  return {a.name, absl::StrCat("other bytes (", a.dtype, ")"), kInfinity};
}

std::vector<TensorDifference> SignalDifferences(const StepTrace& a, const StepTrace& b) {
  std::vector<TensorDifference> differences;
  for (std::size_t i = 0; i < std::min(a.at_cuts.size(), b.at_cuts.size()); ++i) {
    const auto& [name, x] = a.at_cuts[i];
    const auto& [other, y] = b.at_cuts[i];
    if (name != other) {
      differences.push_back({name, absl::StrCat("in the other ", other), kInfinity});
    } else if (!SameBits(x, y)) {
      differences.push_back(
          {name, absl::StrFormat("%.9g and %.9g (relative %.2g)", x, y, Relative(x, y)), Relative(x, y)});
    }
  }
  return differences;
}

// Empty: the same.
std::string StepDifference(const StepTrace& a, const StepTrace& b) {
  if (a.step != b.step) return absl::StrFormat("step %d in one, %d in the other", a.step, b.step);
  if (a.skipped != b.skipped) return absl::StrFormat("step %d: skipped in one only", a.step);
  if (!SameBits(a.loss, b.loss)) {
    return absl::StrFormat("step %d: loss %.9g and %.9g (relative %.2g)", a.step, a.loss, b.loss,
                           Relative(a.loss, b.loss));
  }
  if (!Same(a.gradient_norm, b.gradient_norm)) {
    const double x = a.gradient_norm.value_or(0), y = b.gradient_norm.value_or(0);
    return absl::StrFormat("step %d: equal loss, gradient norm %.9g and %.9g (relative %.2g)", a.step, x, y,
                           Relative(x, y));
  }
  if (!std::equal(a.squared_norms.begin(), a.squared_norms.end(), b.squared_norms.begin(), b.squared_norms.end(),
                  [](double x, double y) { return SameBits(x, y); })) {
    return absl::StrFormat("step %d: equal loss and gradient norm, but not in every parameter", a.step);
  }
  return SignalDifferences(a, b).empty()
             ? ""
             : absl::StrFormat("step %d: equal loss and gradients, but not at every cut point", a.step);
}

std::vector<TensorDifference> GradientDifferences(const StepTrace& a, const StepTrace& b,
                                                  const std::vector<std::string>& names) {
  std::vector<TensorDifference> differences;
  const std::size_t count = std::min(a.squared_norms.size(), b.squared_norms.size());
  for (std::size_t i = 0; i < count; ++i) {
    const double x = std::sqrt(a.squared_norms[i]), y = std::sqrt(b.squared_norms[i]);
    if (SameBits(a.squared_norms[i], b.squared_norms[i])) continue;
    const double relative = Relative(x, y);
    differences.push_back({i < names.size() ? names[i] : absl::StrCat("parameter ", i),
                           absl::StrFormat("gradient norm %.9g and %.9g (relative %.2g)", x, y, relative), relative});
  }
  return differences;
}

void AppendTensors(const char* what, int of, const std::vector<TensorDifference>& tensors, std::string* out) {
  if (tensors.empty()) return;
  absl::StrAppendFormat(out, "  %s: %d of %d differ\n    first:   %s: %s\n", what, tensors.size(), of,
                        tensors.front().name, tensors.front().what);
  const auto largest = std::max_element(tensors.begin(), tensors.end(),
                                        [](const auto& a, const auto& b) { return a.relative < b.relative; });
  absl::StrAppendFormat(out, "    largest: %s: %s\n", largest->name, largest->what);
}

}  // namespace

absl::StatusOr<std::vector<TensorDifference>> CompareWeights(std::string_view a, std::string_view b, int* tensors) {
  RESBM_ASSIGN_OR_RETURN(const SafetensorsFile first, ParseSafetensors(a));
  RESBM_ASSIGN_OR_RETURN(const SafetensorsFile second, ParseSafetensors(b));
  std::map<std::string, const SafetensorsEntry*> others;
  for (const SafetensorsEntry& entry : second.tensors) others[entry.name] = &entry;
  *tensors = static_cast<int>(std::max(first.tensors.size(), second.tensors.size()));
  std::vector<TensorDifference> differences;
  for (const SafetensorsEntry& entry : first.tensors) {
    const auto other = others.find(entry.name);
    if (other == others.end()) {
      differences.push_back({entry.name, "only in the first", kInfinity});
      continue;
    }
    const SafetensorsEntry& twin = *other->second;
    if (entry.dtype != twin.dtype || entry.shape != twin.shape || entry.data != twin.data) {
      differences.push_back(Differs(entry, twin));
    }
    others.erase(other);
  }
  for (const auto& [name, entry] : others) differences.push_back({name, "only in the second", kInfinity});
  return differences;
}

absl::StatusOr<RunDifference> CompareRuns(const RunTrace& a, const RunTrace& b) {
  RunDifference difference;
  difference.steps = static_cast<int>(std::min(a.steps.size(), b.steps.size()));
  if (difference.steps > 0) {
    difference.parameters =
        static_cast<int>(std::min(a.steps.front().squared_norms.size(), b.steps.front().squared_norms.size()));
    difference.signals = static_cast<int>(std::min(a.steps.front().at_cuts.size(), b.steps.front().at_cuts.size()));
  }
  for (int i = 0; i < difference.steps && difference.first_step.empty(); ++i) {
    difference.first_step = StepDifference(a.steps[i], b.steps[i]);
    if (difference.first_step.empty()) continue;
    difference.at_cuts = SignalDifferences(a.steps[i], b.steps[i]);
    difference.gradients = GradientDifferences(a.steps[i], b.steps[i], a.parameters);
  }
  if (difference.first_step.empty() && a.steps.size() != b.steps.size()) {
    difference.first_step = absl::StrFormat("%d steps in one, %d in the other", a.steps.size(), b.steps.size());
  }
  auto weights = CompareWeights(a.weights, b.weights, &difference.tensors);
  if (!weights.ok()) return Annotate(weights.status(), absl::StrCat("weights of ", a.name, " or of ", b.name));
  difference.weights = *std::move(weights);
  return difference;
}

std::string Describe(const RunTrace& a, const RunTrace& b, const RunDifference& d) {
  if (d.equal()) {
    std::string gradients =
        d.parameters > 0 ? absl::StrFormat("gradient norms of %d parameters, ", d.parameters) : "gradient norms, ";
    if (d.signals > 0) absl::StrAppendFormat(&gradients, "%d signals at cut points, ", d.signals);
    return absl::StrFormat("equal in every bit: %s and %s, %d step%s (losses, %s%d weight tensors)\n", a.name, b.name,
                           d.steps, d.steps == 1 ? "" : "s", gradients, d.tensors);
  }
  std::string out = absl::StrFormat("NOT EQUAL: %s and %s\n", a.name, b.name);
  absl::StrAppendFormat(&out, "  first difference: %s\n",
                        d.first_step.empty() ? "in the final weights; losses and gradients are equal" : d.first_step);
  AppendTensors("signals at cut points, in the order of computing", d.signals, d.at_cuts, &out);
  AppendTensors("gradients of that step", d.parameters, d.gradients, &out);
  AppendTensors("final weights", d.tensors, d.weights, &out);
  return out;
}

}  // namespace resbm::coordinator
