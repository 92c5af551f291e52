#include "coordinator/job/presets.h"

#include "absl/strings/str_cat.h"
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
    {
        "byte-gpt",
#include "coordinator/job/byte_gpt.textproto.inc"
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
  return absl::InvalidArgumentError(absl::StrCat("no preset \"", name, "\"; ", SuggestName(name, PresetNames())));
}

}  // namespace resbm::coordinator
