#include "stage_server/compute/range_name.h"

#include <variant>

#include "absl/strings/str_cat.h"

namespace resbm::stage_server {
namespace {

struct Namer {
  std::string operator()(const Forward& w) const { return absl::StrCat("F", w.micro_batch, " step ", w.step); }
  std::string operator()(const Backward& w) const { return absl::StrCat("B", w.micro_batch, " step ", w.step); }
  std::string operator()(const Finish& w) const { return absl::StrCat("finish step ", w.step); }
  std::string operator()(const Apply& w) const { return absl::StrCat("commit step ", w.step); }
  std::string operator()(const EvaluateForward& w) const { return absl::StrCat("E", w.micro_batch); }
  std::string operator()(const Load&) const { return "load"; }
  std::string operator()(const Drop&) const { return "drop"; }
  std::string operator()(const SaveShard&) const { return "save"; }
  std::string operator()(const Unload&) const { return "unload"; }
};

}  // namespace

std::string RangeName(const Work& work) { return std::visit(Namer(), work); }

}  // namespace resbm::stage_server
