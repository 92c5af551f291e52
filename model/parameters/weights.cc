#include "model/parameters/weights.h"

#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/safetensors.h"
#include "proto/base/status.h"

namespace resbm::model {

absl::StatusOr<std::string> SaveTensors(const std::vector<Parameter>& parameters,
                                        const std::vector<at::Tensor>& tensors) {
  c10::NoGradGuard no_grad;
  std::vector<at::Tensor> host;  // owns what the entries point to
  SafetensorsFile file;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    host.push_back(tensors[i].detach().cpu().contiguous());
    const at::Tensor& tensor = host.back();
    file.tensors.push_back({parameters[i].name, "F32", tensor.sizes().vec(),
                            std::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes())});
  }
  return SerializeSafetensors(file);
}

absl::StatusOr<LoadedParameters> LoadParameters(std::string_view safetensors, const std::vector<Parameter>& parameters,
                                                bool partial) {
  RESBM_ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(safetensors));
  std::unordered_map<std::string, const SafetensorsEntry*> entries;
  for (const SafetensorsEntry& entry : file.tensors) entries[entry.name] = &entry;
  LoadedParameters loaded;
  std::unordered_set<std::string> names;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    names.insert(parameter.name);
    const auto found = entries.find(parameter.name);
    if (found == entries.end()) {
      if (partial) {
        loaded.missing.push_back(i);
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("the weights have no \"", parameter.name, "\"; were they saved from another job?"));
    }
    const SafetensorsEntry& entry = *found->second;
    if (entry.dtype != "F32" || parameter.tensor.sizes() != at::IntArrayRef(entry.shape)) {
      return absl::InvalidArgumentError(absl::StrCat("weights \"", parameter.name, "\": expected F32 [",
                                                     absl::StrJoin(parameter.tensor.sizes(), ", "), "], got ",
                                                     entry.dtype, " [", absl::StrJoin(entry.shape, ", "), "]"));
    }
  }
  for (const SafetensorsEntry& entry : file.tensors) {
    if (names.count(entry.name) == 0) loaded.unused.push_back(entry.name);
  }
  c10::NoGradGuard no_grad;
  for (const Parameter& parameter : parameters) {
    const auto found = entries.find(parameter.name);
    if (found == entries.end()) continue;
    const SafetensorsEntry& entry = *found->second;
    at::Tensor values = at::empty(entry.shape, at::TensorOptions().dtype(at::kFloat));
    if (!entry.data.empty()) std::memcpy(values.mutable_data_ptr(), entry.data.data(), entry.data.size());
    at::Tensor(parameter.tensor).copy_(values);
  }
  return loaded;
}

}  // namespace resbm::model
