#include "model/codec/encoded_check.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/codec/extent.h"
#include "proto/base/status.h"

namespace resbm::model {
namespace {

absl::string_view NameOf(WireCodec codec) {
  switch (codec) {
    case WireCodec::kFp32: return "fp32";
    case WireCodec::kBf16: return "bf16";
    case WireCodec::kFp16: return "fp16";
    case WireCodec::kRaw: return "raw";
    case WireCodec::kInt8: return "int8";
    case WireCodec::kInt4: return "int4";
  }
  return "unknown";
}

absl::string_view NameOf(WireDtype dtype) {
  switch (dtype) {
    case WireDtype::kFloat32: return "float32";
    case WireDtype::kBfloat16: return "bfloat16";
    case WireDtype::kFloat16: return "float16";
    case WireDtype::kUint8: return "uint8";
    case WireDtype::kInt64: return "int64";
    case WireDtype::kInt32: return "int32";
    case WireDtype::kInt16: return "int16";
  }
  return "unknown";
}

template <typename Dims>
std::string Bracketed(const Dims& dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ", "), "]");
}

bool DtypeFitsCodec(WireCodec codec, WireDtype dtype) {
  if (codec == WireCodec::kRaw) return IsInteger(dtype);
  return PayloadDtypeOf(codec) == dtype;
}

}  // namespace

absl::Status CheckConsistent(const EncodedTensor& encoded) {
  if (encoded.dims.empty() || encoded.dims.size() > 8) {
    return absl::InvalidArgumentError(absl::StrCat("a tensor has 1 to 8 dimensions, not ", encoded.dims.size()));
  }
  if (!DtypeFitsCodec(encoded.codec, encoded.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("codec ", NameOf(encoded.codec), " (",
                                                   static_cast<int>(encoded.codec), ") does not carry dtype ",
                                                   NameOf(encoded.dtype), " (", static_cast<int>(encoded.dtype), ")"));
  }
  const bool scaled = encoded.codec == WireCodec::kFp16;
  if (encoded.scale_exponent < (scaled ? kMinScaleExponent : 0) ||
      encoded.scale_exponent > (scaled ? kMaxScaleExponent : 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("scale exponent ", encoded.scale_exponent, " is impossible with codec ", NameOf(encoded.codec)));
  }
  std::int64_t values = 1;
  bool possible = true;
  for (const std::int64_t dim : encoded.dims) possible &= dim >= 0 && !__builtin_mul_overflow(values, dim, &values);
  const std::optional<std::uint64_t> bytes =
      possible ? PayloadBytesOf(encoded.codec, encoded.dtype, static_cast<std::uint64_t>(values)) : std::nullopt;
  if (!bytes.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("impossible dimensions ", Bracketed(encoded.dims)));
  }
  if (*bytes != encoded.payload.size()) {
    return absl::InvalidArgumentError(absl::StrCat("dimensions ", Bracketed(encoded.dims), " of ",
                                                   BlockSizeOf(encoded.codec) > 0 ? NameOf(encoded.codec)
                                                                                  : NameOf(encoded.dtype),
                                                   " need ", *bytes, " bytes, the payload has ",
                                                   encoded.payload.size()));
  }
  return absl::OkStatus();
}

absl::Status CheckExpected(const EncodedTensor& encoded, absl::string_view what, WireCodec codec, WireDtype dtype,
                           const std::vector<std::int64_t>& shape, std::int64_t samples) {
  const std::string prefix(what);
  if (encoded.codec != codec || encoded.dtype != dtype) {
    return absl::InvalidArgumentError(absl::StrCat(prefix, ": expected ", NameOf(dtype), " by codec ", NameOf(codec),
                                                   ", got ", NameOf(encoded.dtype), " by codec ", NameOf(encoded.codec),
                                                   "; do both stages have the same job?"));
  }
  const bool rank_fits = encoded.dims.size() == shape.size() + 1;
  const bool samples_fit =
      !encoded.dims.empty() && (samples == 0 ? encoded.dims.front() > 0 : encoded.dims.front() == samples);
  if (!rank_fits || !samples_fit || !std::equal(shape.begin(), shape.end(), encoded.dims.begin() + 1)) {
    std::vector<std::string> expected = {samples == 0 ? "samples" : absl::StrCat(samples)};
    for (const std::int64_t dim : shape) expected.push_back(absl::StrCat(dim));
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, ": expected shape ", Bracketed(expected), ", got ", Bracketed(encoded.dims)));
  }
  return Annotate(CheckConsistent(encoded), prefix);
}

}  // namespace resbm::model
