#include "coordinator/sweep/sweep_plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <google/protobuf/util/message_differencer.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/compare/job_fields.h"
#include "coordinator/plan/model_plan.h"

namespace resbm::coordinator {
namespace {

constexpr char kUncompressed[] = "boundary.kind=IDENTITY";

// "boundary.kind=IDENTITY" -> "kind=IDENTITY".
std::string NameOf(const std::string& setting) {
  const std::size_t equals = setting.find('=');
  return absl::StrCat(ShortName(setting.substr(0, equals)), setting.substr(equals));
}

}  // namespace

std::vector<std::string> SplitValues(absl::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  for (std::string& value : values) value = std::string(absl::StripAsciiWhitespace(value));
  values.erase(std::remove(values.begin(), values.end(), ""), values.end());
  return values;
}

absl::StatusOr<std::vector<SweepArm>> PlanSweep(const SweepSpec& spec) {
  if (spec.field.empty() || absl::StrContains(spec.field, "=")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--field \"", spec.field, "\" is no field of a job; an example is --field boundary.ratio"));
  }
  if (spec.values.empty()) return absl::InvalidArgumentError("--values is empty; an example is --values 4,8,16,32");
  std::set<std::string> seen;
  for (const std::string& value : spec.values) {
    if (!seen.insert(value).second) {
      return absl::InvalidArgumentError(absl::StrCat("--values: ", value, " is there twice"));
    }
  }
  std::string baseline = spec.baseline;
  if (baseline.empty()) {
    const bool compresses = absl::StartsWith(spec.field, "boundary.") || absl::StartsWith(spec.field, "wire.");
    baseline = compresses ? kUncompressed : "none";
  }
  std::vector<SweepArm> arms;
  if (baseline != "none") {
    if (!absl::StrContains(baseline, "=")) {
      return absl::InvalidArgumentError(
          absl::StrCat("--baseline ", baseline, ": expected PATH=VALUE, as in ", kUncompressed, ", or none"));
    }
    // A kind that is swept itself is not set twice.
    const bool is_value =
        baseline.substr(0, baseline.find('=')) == spec.field && seen.contains(baseline.substr(baseline.find('=') + 1));
    if (!is_value) arms.push_back({NameOf(baseline), "", {baseline}});
    for (const std::string& value : spec.values) {
      const std::string setting = absl::StrCat(spec.field, "=", value);
      const SweepArm arm = {NameOf(setting), value, {setting}};
      if (is_value && setting == baseline) {
        arms.insert(arms.begin(), arm);
      } else {
        arms.push_back(arm);
      }
    }
    return arms;
  }
  for (const std::string& value : spec.values) {
    const std::string setting = absl::StrCat(spec.field, "=", value);
    arms.push_back({NameOf(setting), value, {setting}});
  }
  return arms;
}

std::string FolderName(absl::string_view name) {
  std::string folder(name);
  for (char& c : folder) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  }
  return folder.substr(0, 80);
}

std::vector<std::string> FolderNames(const std::vector<SweepArm>& arms) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const SweepArm& arm : arms) {
    std::string name = FolderName(arm.name);
    if (!seen.insert(name).second) {
      name = absl::StrCat(name.substr(0, 72), "-", names.size() + 1);
      seen.insert(name);
    }
    names.push_back(name);
  }
  return names;
}

bool TrainTheSame(const v1::Job& a, const v1::Job& b) {
  const auto model_a = ExpandModel(a), model_b = ExpandModel(b);
  if (!model_a.ok() || !model_b.ok()) return false;
  const auto same = [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& one, const auto& other) {
      return google::protobuf::util::MessageDifferencer::Equals(one, other);
    });
  };
  if (!same(model_a->layers, model_b->layers) || !same(model_a->boundaries, model_b->boundaries)) return false;
  // The rest, without what the model is made of.
  v1::Job rest_a = a, rest_b = b;
  for (v1::Job* rest : {&rest_a, &rest_b}) {
    rest->clear_boundary();
    rest->clear_wire();
    for (v1::CutPoint& cut : *rest->mutable_cut_point()) {
      cut.clear_boundary();
      cut.clear_wire();
    }
  }
  return google::protobuf::util::MessageDifferencer::Equals(rest_a, rest_b);
}

std::int64_t FractionOfSamples(std::int64_t samples, double fraction, std::int64_t batch) {
  const std::int64_t some = std::llround(static_cast<double>(samples) * fraction);
  return std::min(samples, std::max(some, batch));
}

}  // namespace resbm::coordinator
