#include "coordinator/job/presets.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/job/nearest_name.h"

namespace resbm::coordinator {
namespace {

struct Preset {
  const char* name;
  const char* text;
};

constexpr Preset kPresets[] = {
    {
        "fmnist",
#include "coordinator/job/fashion_mnist.textproto.inc"
    },
    {
        "cifar10",
#include "coordinator/job/cifar10.textproto.inc"
    },
};

}  // namespace

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.push_back(preset.name);
  return names;
}

absl::StatusOr<std::string> PresetText(absl::string_view name) {
  for (const Preset& preset : kPresets) {
    if (name == preset.name) return std::string(preset.text);
  }
  const std::string known = absl::StrJoin(PresetNames(), ", ");
  if (name == "byte-gpt") {
    return absl::UnimplementedError(
        absl::StrCat("preset byte-gpt: language models are not implemented; choose one of ", known));
  }
  return absl::InvalidArgumentError(absl::StrCat("no preset \"", name, "\"; ", SuggestName(name, PresetNames())));
}

}  // namespace resbm::coordinator
