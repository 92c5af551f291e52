// Whether an encoded tensor is what is expected here, before anything is allocated for it.
#ifndef RESBM_MODEL_CODEC_ENCODED_CHECK_H_
#define RESBM_MODEL_CODEC_ENCODED_CHECK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/encoded_tensor.h"

namespace resbm::model {

// dims (1 to 8, none negative), dtype, codec, scale exponent and payload size fit together, else
// INVALID_ARGUMENT.
absl::Status CheckConsistent(const EncodedTensor& encoded);

// [samples, shape...] of `codec` and `dtype`; `samples` 0 = any positive number. INVALID_ARGUMENT names
// `what` and both shapes, dtypes or codecs.
absl::Status CheckExpected(const EncodedTensor& encoded, absl::string_view what, WireCodec codec, WireDtype dtype,
                           const std::vector<std::int64_t>& shape, std::int64_t samples);

}  // namespace resbm::model

#endif  // RESBM_MODEL_CODEC_ENCODED_CHECK_H_
