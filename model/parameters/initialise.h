// Initial weights. A value depends on the job's seed, the global index of its layer and its name within the
// layer, on nothing else: not on where the model is cut, nor on the device.
#ifndef RESBM_MODEL_PARAMETERS_INITIALISE_H_
#define RESBM_MODEL_PARAMETERS_INITIALISE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "model/parameters/parameters.h"

namespace resbm::model {

// XXH3-64 of "layer" or "boundary", the layer's index and the parameter's local name, seeded by the job's seed.
std::uint64_t SeedOf(std::uint64_t job_seed, const Origin& origin, absl::string_view local_name);

// Kaiming normal (He et al. 2015): standard deviation gain / sqrt(out_channels * kh * kw) for fan_out (equation
// 14), gain / sqrt(in_channels * kh * kw) for fan_in (equation 10); normal of a deviation that is given; orthonormal
// rows or their transpose; or ones, or zeros. Drawn by a CPU generator of its own. Throws c10::Error.
void Initialise(std::uint64_t job_seed, const Parameter& parameter);

}  // namespace resbm::model

#endif  // RESBM_MODEL_PARAMETERS_INITIALISE_H_
