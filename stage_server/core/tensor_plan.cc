#include "stage_server/core/tensor_plan.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::stage_server {
namespace {

absl::StatusOr<v1::TensorHeader> Header(v1::TensorKind kind, WorkId id, std::uint32_t micro_batch, std::int64_t samples,
                                        const TensorShape& shape, std::uint64_t max_tensor_bytes) {
  v1::TensorHeader header;
  header.set_kind(kind);
  if (id.evaluation) {
    header.set_evaluation(id.number);
  } else {
    header.set_step(id.number);
  }
  header.set_micro_batch(micro_batch);
  header.set_codec(shape.codec);
  header.set_dtype(shape.dtype);
  header.set_block_size(BlockSizeOf(static_cast<WireCodec>(shape.codec)));
  header.add_dims(samples);
  for (std::int64_t dim : shape.dims) header.add_dims(dim);
  const absl::StatusOr<std::uint64_t> bytes = wire::PayloadBytes(header.dims(), static_cast<WireDtype>(shape.dtype),
                                                                 static_cast<WireCodec>(shape.codec));
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

absl::StatusOr<std::vector<v1::TensorHeader>> Headers(v1::TensorKind kind, WorkId id, std::uint32_t micro_batch,
                                                      std::int64_t samples, const std::vector<TensorShape>& shapes,
                                                      std::uint64_t max_tensor_bytes) {
  std::vector<v1::TensorHeader> headers;
  for (const TensorShape& shape : shapes) {
    RESBM_ASSIGN_OR_RETURN(v1::TensorHeader header, Header(kind, id, micro_batch, samples, shape, max_tensor_bytes));
    header.set_tensor_index(static_cast<std::uint32_t>(headers.size()));
    header.set_tensor_count(static_cast<std::uint32_t>(shapes.size()));
    headers.push_back(std::move(header));
  }
  return headers;
}

}  // namespace

std::uint32_t ExpectedCount(const StageShape& shape, End end) {
  if (end == End::kUp) return shape.is_first() ? 1 : static_cast<std::uint32_t>(shape.up->activations.size());
  return shape.is_last() ? 1 : static_cast<std::uint32_t>(shape.down->gradients.size());
}

absl::StatusOr<std::vector<v1::TensorHeader>> ExpectedTensors(const StageShape& shape, End end, WorkId id,
                                                              std::uint32_t micro_batch, std::int64_t samples,
                                                              std::uint64_t max_tensor_bytes) {
  if (end == End::kUp) {
    if (shape.is_first()) return Headers(v1::INPUT, id, micro_batch, samples, {shape.input}, max_tensor_bytes);
    return Headers(v1::ACTIVATION, id, micro_batch, samples, shape.up->activations, max_tensor_bytes);
  }
  if (shape.is_last()) return Headers(v1::TARGET, id, micro_batch, samples, {shape.target}, max_tensor_bytes);
  return Headers(v1::GRADIENT, id, micro_batch, samples, shape.down->gradients, max_tensor_bytes);
}

absl::StatusOr<std::vector<v1::TensorHeader>> OutgoingTensors(const StageShape& shape, End end, WorkId id,
                                                              std::uint32_t micro_batch, std::int64_t samples,
                                                              std::uint64_t max_tensor_bytes) {
  if (end == End::kUp) return Headers(v1::GRADIENT, id, micro_batch, samples, shape.up->gradients, max_tensor_bytes);
  return Headers(v1::ACTIVATION, id, micro_batch, samples, shape.down->activations, max_tensor_bytes);
}

absl::Status CheckOutgoing(const v1::TensorHeader& announced, const EncodedTensor& tensor) {
  const bool same_dims = std::equal(announced.dims().begin(), announced.dims().end(), tensor.dims.begin(), tensor.dims.end());
  if (same_dims && announced.payload_bytes() == tensor.payload.size() &&
      static_cast<int>(announced.dtype()) == static_cast<int>(tensor.dtype) &&
      static_cast<int>(announced.codec()) == static_cast<int>(tensor.codec)) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "micro-batch ", announced.micro_batch(), ": computed ", v1::TensorKind_Name(announced.kind()), " ",
      announced.tensor_index(), " of ", announced.tensor_count(), " is [",
      absl::StrJoin(tensor.dims, ", "), "] with dtype ", static_cast<int>(tensor.dtype), ", codec ",
      static_cast<int>(tensor.codec), " and ", tensor.payload.size(), " bytes; the spec says [",
      absl::StrJoin(announced.dims(), ", "), "] with dtype ", static_cast<int>(announced.dtype()), ", codec ",
      static_cast<int>(announced.codec()), " and ", announced.payload_bytes(), " bytes"));
}

}  // namespace resbm::stage_server
