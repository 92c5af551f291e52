// What a message says of a tensor's form, checked: a proto3 enum holds any number that a peer sends.
#ifndef RESBM_PROTO_WIRE_TENSOR_KIND_H_
#define RESBM_PROTO_WIRE_TENSOR_KIND_H_

#include <optional>

#include "proto/base/encoded_tensor.h"
#include "proto/resbm/v1/layer.pb.h"

namespace resbm::wire {

// The codec, if it is one for floating point; nothing for CODEC_RAW and unknown numbers.
inline std::optional<WireCodec> FloatCodec(v1::Codec codec) {
  if (!v1::Codec_IsValid(codec)) return std::nullopt;
  const auto wire = static_cast<WireCodec>(codec);
  return PayloadDtypeOf(wire).has_value() ? std::optional(wire) : std::nullopt;
}

// The dtype, if it is one that CODEC_RAW carries; nothing for others and unknown numbers.
inline std::optional<WireDtype> IntegerDtype(v1::WireDtype dtype) {
  if (!v1::WireDtype_IsValid(dtype)) return std::nullopt;
  const auto wire = static_cast<WireDtype>(dtype);
  return IsInteger(wire) ? std::optional(wire) : std::nullopt;
}

}  // namespace resbm::wire

#endif  // RESBM_PROTO_WIRE_TENSOR_KIND_H_
