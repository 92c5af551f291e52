// Parameters to and from the bytes of a safetensors file.
#ifndef RESBM_MODEL_PARAMETERS_WEIGHTS_H_
#define RESBM_MODEL_PARAMETERS_WEIGHTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/parameters/parameters.h"
#include "model/torch/torch_headers.h"

namespace resbm::model {

// `tensors[i]` under the name of `parameters[i]`, fp32, row-major. Throws c10::Error.
absl::StatusOr<std::string> SaveTensors(const std::vector<Parameter>& parameters,
                                        const std::vector<at::Tensor>& tensors);

struct LoadedParameters {
  std::vector<std::string> unused;   // tensors of the file that are no parameter's
  std::vector<std::size_t> missing;  // indices of parameters that the file lacks
};

// Copies each parameter's values out of the file. INVALID_ARGUMENT: not a safetensors file, another shape or dtype
// than fp32, or, unless `partial`, a name is missing; then no parameter was changed.
absl::StatusOr<LoadedParameters> LoadParameters(std::string_view safetensors, const std::vector<Parameter>& parameters,
                                                bool partial);

}  // namespace resbm::model

#endif  // RESBM_MODEL_PARAMETERS_WEIGHTS_H_
