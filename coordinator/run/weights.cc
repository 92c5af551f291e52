#include "coordinator/run/weights.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "proto/base/safetensors.h"
#include "proto/base/status.h"

namespace resbm::coordinator {
namespace {

bool Needs(const v1::StageSpec& stage, const std::string& name) {
  for (const v1::LayerSpec& layer : stage.layers()) {
    if (absl::StartsWith(name, absl::StrCat(layer.name(), "."))) return true;
  }
  for (const v1::BoundarySpec& boundary : stage.boundaries()) {
    if (absl::StartsWith(name, BoundaryPrefix(boundary.cut_point()))) return true;
  }
  return false;
}

}  // namespace

std::string BoundaryPrefix(std::string_view cut_point) {
  return absl::StrCat("boundaries.", absl::StrReplaceAll({cut_point.data(), cut_point.size()}, {{".", "_"}}), ".");
}

absl::StatusOr<std::string> MergeShards(absl::Span<const std::string> shards) {
  SafetensorsFile all;
  for (std::size_t stage = 0; stage < shards.size(); ++stage) {
    auto shard = ParseSafetensors(shards[stage]);
    if (!shard.ok()) {
      return absl::DataLossError(absl::StrFormat("weights of stage %d: %s", stage, shard.status().message()));
    }
    for (SafetensorsEntry& tensor : shard->tensors) all.tensors.push_back(std::move(tensor));
  }
  all.metadata["format"] = "pt";  // what Python's loaders look for
  auto merged = SerializeSafetensors(all);
  if (!merged.ok()) return absl::DataLossError(merged.status().message());
  return merged;
}

absl::StatusOr<std::vector<std::string>> SplitWeights(std::string_view weights, absl::Span<const v1::StageSpec> stages,
                                                      std::vector<std::string>* left_out) {
  RESBM_ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(weights));
  std::vector<SafetensorsFile> parts(stages.size());
  for (const SafetensorsEntry& tensor : file.tensors) {
    bool taken = false;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (!Needs(stages[s], tensor.name)) continue;
      parts[s].tensors.push_back(tensor);
      taken = true;
    }
    if (!taken && left_out != nullptr) {
      left_out->push_back(tensor.name);
    } else if (!taken) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the weights hold \"%s\", which belongs to no layer or boundary of the job's model", tensor.name));
    }
  }
  std::vector<std::string> shards;
  for (const SafetensorsFile& part : parts) {
    RESBM_ASSIGN_OR_RETURN(std::string shard, SerializeSafetensors(part));
    shards.push_back(std::move(shard));
  }
  return shards;
}

}  // namespace resbm::coordinator
