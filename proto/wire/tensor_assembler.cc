#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::wire {
namespace {

// The scale of fp16 puts a magnitude in [2^-149, 2^128) into [2^14, 2^15): [-113, 163], with room to spare.
constexpr int kMaxScaleExponent = 256;
// Of a cache line, for vector instructions of the codec.
constexpr std::align_val_t kAlignment{64};

template <typename A, typename B>
absl::Status Differs(absl::string_view field, const A& is, const B& expected) {
  return absl::InvalidArgumentError(absl::StrCat("header field ", field, " is ", is, ", expected ", expected));
}

std::string FenceName(const v1::TensorHeader& header) {
  return absl::StrCat(header.fence().epoch(), ".", header.fence().generation());
}

std::string WorkName(const v1::TensorHeader& header) {
  switch (header.work_case()) {
    case v1::TensorHeader::kStep: return absl::StrCat("step ", header.step());
    case v1::TensorHeader::kEvaluation: return absl::StrCat("evaluation ", header.evaluation());
    default: return "nothing";
  }
}

// Uninitialised: every byte is written by a chunk. Null when memory is short.
std::shared_ptr<char[]> Allocate(std::uint64_t size) {
  void* bytes = ::operator new[](std::max<std::uint64_t>(1, size), kAlignment, std::nothrow);
  if (bytes == nullptr) return nullptr;
  return std::shared_ptr<char[]>(static_cast<char*>(bytes), [](char* p) { ::operator delete[](p, kAlignment); });
}

}  // namespace

absl::Status CheckHeader(const v1::TensorHeader& expected, const v1::TensorHeader& header) {
#define RESBM_CHECK_FIELD(field) \
  if (header.field() != expected.field()) return Differs(#field, header.field(), expected.field())
  RESBM_CHECK_FIELD(kind);
  if (FenceName(header) != FenceName(expected)) return Differs("fence", FenceName(header), FenceName(expected));
  if (header.work_case() != expected.work_case() || header.step() != expected.step() ||
      header.evaluation() != expected.evaluation()) {
    return Differs("work", WorkName(header), WorkName(expected));
  }
  RESBM_CHECK_FIELD(link);
  RESBM_CHECK_FIELD(towards);
  RESBM_CHECK_FIELD(micro_batch);
  RESBM_CHECK_FIELD(tensor_index);
  RESBM_CHECK_FIELD(tensor_count);
  RESBM_CHECK_FIELD(dtype);
  RESBM_CHECK_FIELD(codec);
  RESBM_CHECK_FIELD(block_size);
  if (!std::equal(header.dims().begin(), header.dims().end(), expected.dims().begin(), expected.dims().end())) {
    return Differs("dims", absl::StrCat("[", absl::StrJoin(header.dims(), ","), "]"),
                   absl::StrCat("[", absl::StrJoin(expected.dims(), ","), "]"));
  }
  RESBM_CHECK_FIELD(payload_bytes);
  RESBM_CHECK_FIELD(chunk_count);
#undef RESBM_CHECK_FIELD
  if (header.scale_exponent() != 0 && header.codec() != v1::CODEC_FP16) {
    return Differs("scale_exponent", header.scale_exponent(), "0, as only fp16 is scaled");
  }
  if (std::abs(static_cast<std::int64_t>(header.scale_exponent())) > kMaxScaleExponent) {
    return Differs("scale_exponent", header.scale_exponent(), absl::StrCat(kMaxScaleExponent, " at most either way"));
  }
  return absl::OkStatus();
}

TensorAssembler::TensorAssembler(v1::TensorHeader expected) : expected_(std::move(expected)) {}

absl::StatusOr<bool> TensorAssembler::Add(const ChunkView& chunk) {
  if (chunk.index != next_chunk_ || next_chunk_ >= expected_.chunk_count()) {
    return absl::DataLossError(absl::StrCat("chunk ", chunk.index, " came where chunk ", next_chunk_, " of ",
                                            expected_.chunk_count(), " was due"));
  }
  // Before the header is read: damage on the way must not look like a peer that speaks wrongly.
  if (ChunkChecksum(expected_.fence(), chunk.header, chunk.index, chunk.payload) != chunk.checksum) {
    return absl::DataLossError(absl::StrCat("the checksum of chunk ", chunk.index, " is wrong"));
  }
  if (chunk.header.empty() != (next_chunk_ > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk ", chunk.index, chunk.header.empty() ? " has no header" : " has a header"));
  }
  if (next_chunk_ == 0) {
    v1::TensorHeader header;
    if (!header.ParseFromString(chunk.header)) return absl::InvalidArgumentError("the tensor header cannot be read");
    RESBM_RETURN_IF_ERROR(CheckHeader(expected_, header));
    header_ = std::move(header);
  }
  const std::uint64_t offset = std::uint64_t{next_chunk_} * kChunkBytes;
  const std::uint64_t size = std::min<std::uint64_t>(kChunkBytes, expected_.payload_bytes() - offset);
  if (chunk.payload_bytes != size) {
    return absl::DataLossError(absl::StrCat("chunk ", chunk.index, " has ", chunk.payload_bytes, " bytes, not ", size));
  }
  if (next_chunk_ == 0) {
    buffer_ = Allocate(expected_.payload_bytes());
    if (buffer_ == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for a tensor of ", expected_.payload_bytes(),
                       " bytes: give the process more or make micro-batches smaller"));
    }
  }
  char* to = buffer_.get() + offset;
  for (const std::string_view piece : chunk.payload) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
  ++next_chunk_;
  return next_chunk_ == expected_.chunk_count();
}

EncodedTensor TensorAssembler::Take() {
  EncodedTensor tensor;
  tensor.codec = static_cast<WireCodec>(header_.codec());
  tensor.dtype = static_cast<WireDtype>(header_.dtype());
  tensor.dims.assign(header_.dims().begin(), header_.dims().end());
  tensor.scale_exponent = header_.scale_exponent();
  tensor.non_finite = header_.non_finite();
  const char* data = buffer_.get();
  tensor.payload = SharedBytes(std::move(buffer_), data, expected_.payload_bytes());
  return tensor;
}

}  // namespace resbm::wire
