// Parameters to and from the bytes of a safetensors file.
#ifndef RESBM_MODEL_WEIGHTS_H_
#define RESBM_MODEL_WEIGHTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/parameters.h"
#include "model/torch_headers.h"

namespace resbm::model {

// `tensors[i]` under the name of `parameters[i]`, fp32, row-major. Throws c10::Error.
absl::StatusOr<std::string> SaveTensors(const std::vector<Parameter>& parameters,
                                        const std::vector<at::Tensor>& tensors);

// Copies each parameter's values out of the file; other tensors in it are ignored. INVALID_ARGUMENT: not a
// safetensors file, a name is missing, another shape or dtype than fp32; then no parameter was changed.
absl::Status LoadParameters(std::string_view safetensors, const std::vector<Parameter>& parameters);

}  // namespace resbm::model

#endif  // RESBM_MODEL_WEIGHTS_H_
