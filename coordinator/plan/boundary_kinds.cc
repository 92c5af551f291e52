#include "coordinator/plan/boundary_kinds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace resbm::coordinator {
namespace {

const std::vector<KindInfo>& Kinds() {
  static const auto* const kinds = new std::vector<KindInfo>{
      {v1::Boundary::RESBM, v1::BoundarySpec::RESBM, {Form::kImage}},
      {v1::Boundary::IDENTITY, v1::BoundarySpec::IDENTITY, {Form::kValues, Form::kSequence, Form::kImage}},
      {v1::Boundary::LINEAR, v1::BoundarySpec::LINEAR, {Form::kSequence, Form::kImage}},
      {v1::Boundary::TOPK, v1::BoundarySpec::TOPK, {Form::kValues, Form::kSequence, Form::kImage}},
      {v1::Boundary::BOTTLENECK, v1::BoundarySpec::BOTTLENECK, {Form::kImage}},
      {v1::Boundary::IDENTITY_BLOCK, v1::BoundarySpec::IDENTITY_BLOCK, {Form::kImage}},
      {v1::Boundary::IN_BRANCH, v1::BoundarySpec::IN_BRANCH, {Form::kSequence}},
      {v1::Boundary::ADAPTER, v1::BoundarySpec::ADAPTER, {Form::kSequence}},
  };
  return *kinds;
}

}  // namespace

Form FormOf(const v1::LayerSpec& layer) { return static_cast<Form>(layer.output_shape_size()); }

std::string Describe(Form form) {
  switch (form) {
    case Form::kValues: return "single values";
    case Form::kSequence: return "a sequence";
    case Form::kImage: return "an image";
  }
  return "";
}

bool KindInfo::Takes(Form form) const { return std::find(takes.begin(), takes.end(), form) != takes.end(); }

const KindInfo& InfoOf(v1::Boundary::Kind kind) {
  return *std::find_if(Kinds().begin(), Kinds().end(), [kind](const KindInfo& info) { return info.kind == kind; });
}

bool KeepsShape(v1::Boundary::Kind kind, Form form) {
  if (form == Form::kSequence) return true;
  return kind == v1::Boundary::IDENTITY || kind == v1::Boundary::IDENTITY_BLOCK || kind == v1::Boundary::TOPK;
}

std::string KindsFor(Form form) {
  std::vector<std::string> names;
  for (const KindInfo& info : Kinds()) {
    if (info.Takes(form)) names.push_back(v1::Boundary::Kind_Name(info.kind));
  }
  const std::string last = names.back();
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), " or ", last);
}

}  // namespace resbm::coordinator
