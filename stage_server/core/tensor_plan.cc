#include "stage_server/core/tensor_plan.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::stage_server {
namespace {

v1::WireDtype DtypeOf(v1::Codec codec) {
  switch (codec) {
    case v1::CODEC_BF16: return v1::BFLOAT16;
    case v1::CODEC_FP16: return v1::FLOAT16;
    case v1::CODEC_INT8:
    case v1::CODEC_INT4: return v1::UINT8;
    default: return v1::FLOAT32;
  }
}

absl::StatusOr<v1::TensorHeader> Header(v1::TensorKind kind, WorkId id, std::uint32_t micro_batch, std::int64_t samples,
                                        const std::vector<std::int64_t>& shape, v1::Codec codec, v1::WireDtype dtype,
                                        std::uint64_t max_tensor_bytes) {
  v1::TensorHeader header;
  header.set_kind(kind);
  if (id.evaluation) {
    header.set_evaluation(id.number);
  } else {
    header.set_step(id.number);
  }
  header.set_micro_batch(micro_batch);
  header.set_tensor_index(0);
  header.set_tensor_count(1);
  header.set_codec(codec);
  header.set_dtype(dtype);
  header.set_block_size(BlockSizeOf(static_cast<WireCodec>(codec)));
  header.add_dims(samples);
  for (std::int64_t dim : shape) header.add_dims(dim);
  const absl::StatusOr<std::uint64_t> bytes = wire::PayloadBytes(header.dims(), static_cast<WireDtype>(dtype), static_cast<WireCodec>(codec));
  if (!bytes.ok()) return Annotate(bytes.status(), absl::StrCat("micro-batch ", micro_batch));
  if (*bytes > max_tensor_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("micro-batch ", micro_batch, ": ", v1::TensorKind_Name(kind), " [",
                                                   absl::StrJoin(header.dims(), ", "), "] has ", *bytes,
                                                   " bytes, this server takes at most ", max_tensor_bytes,
                                                   "; use smaller micro-batches"));
  }
  header.set_payload_bytes(*bytes);
  return header;
}

}  // namespace

absl::StatusOr<v1::TensorHeader> ExpectedTensor(const StageShape& shape, End end, WorkId id, std::uint32_t micro_batch,
                                                std::int64_t samples, std::uint64_t max_tensor_bytes) {
  if (end == End::kUp) {
    if (shape.is_first()) {
      return Header(v1::INPUT, id, micro_batch, samples, shape.input_shape, v1::CODEC_RAW, v1::UINT8, max_tensor_bytes);
    }
    return Header(v1::ACTIVATION, id, micro_batch, samples, shape.up->wire_shape, shape.up->activation_codec,
                  DtypeOf(shape.up->activation_codec), max_tensor_bytes);
  }
  if (shape.is_last()) {
    return Header(v1::TARGET, id, micro_batch, samples, {}, v1::CODEC_RAW, v1::INT64, max_tensor_bytes);
  }
  return Header(v1::GRADIENT, id, micro_batch, samples, shape.down->wire_shape, shape.down->gradient_codec,
                DtypeOf(shape.down->gradient_codec), max_tensor_bytes);
}

absl::StatusOr<v1::TensorHeader> OutgoingTensor(const StageShape& shape, End end, WorkId id, std::uint32_t micro_batch,
                                                std::int64_t samples, std::uint64_t max_tensor_bytes) {
  if (end == End::kUp) {
    return Header(v1::GRADIENT, id, micro_batch, samples, shape.up->wire_shape, shape.up->gradient_codec,
                  DtypeOf(shape.up->gradient_codec), max_tensor_bytes);
  }
  return Header(v1::ACTIVATION, id, micro_batch, samples, shape.down->wire_shape, shape.down->activation_codec,
                DtypeOf(shape.down->activation_codec), max_tensor_bytes);
}

absl::Status CheckOutgoing(const v1::TensorHeader& announced, const EncodedTensor& tensor) {
  const bool same_dims = std::equal(announced.dims().begin(), announced.dims().end(), tensor.dims.begin(), tensor.dims.end());
  if (same_dims && announced.payload_bytes() == tensor.payload.size() &&
      static_cast<int>(announced.dtype()) == static_cast<int>(tensor.dtype) &&
      static_cast<int>(announced.codec()) == static_cast<int>(tensor.codec)) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "micro-batch ", announced.micro_batch(), ": computed ", v1::TensorKind_Name(announced.kind()), " is [",
      absl::StrJoin(tensor.dims, ", "), "] with dtype ", static_cast<int>(tensor.dtype), ", codec ",
      static_cast<int>(tensor.codec), " and ", tensor.payload.size(), " bytes; the spec says [",
      absl::StrJoin(announced.dims(), ", "), "] with dtype ", static_cast<int>(announced.dtype()), ", codec ",
      static_cast<int>(announced.codec()), " and ", announced.payload_bytes(), " bytes"));
}

}  // namespace resbm::stage_server
