// One tensor as a sequence of LinkMessages: a header sent once as raw bytes, chunks of 256 KiB, each with
// its checksum. gRPC-free: messages leave as a small prefix and a view of the payload (so that the payload
// is never copied on the way out) and arrive as views of whatever buffers the transport has (one copy, to
// where the tensor will be used).
#ifndef RESBM_PROTO_WIRE_TENSOR_FRAME_H_
#define RESBM_PROTO_WIRE_TENSOR_FRAME_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/base/encoded_tensor.h"
#include "proto/resbm/v1/link.pb.h"

namespace resbm::wire {

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::size_t kChunkBytes = 256 * 1024;
inline constexpr int kMaxDims = 8;
// A serialized header is never longer (8 dims of 10 bytes, and scalars).
inline constexpr std::size_t kMaxHeaderBytes = 512;

// XXH3-64 over header bytes, index as u32 little-endian, payload; seed = epoch << 32 | generation.
std::uint64_t ChunkChecksum(const v1::Fence& fence, std::string_view header, std::uint32_t index,
                            absl::Span<const std::string_view> payload);

// ceil(payload / kChunkBytes), at least 1.
std::uint32_t ChunkCount(std::uint64_t payload_bytes);

// Bytes of the payload that dims, dtype and codec imply (only a blockwise codec has others than the dtype says),
// or INVALID_ARGUMENT: more than kMaxDims dims, a dim < 0, an overflow. A dim of 0 gives 0.
absl::StatusOr<std::uint64_t> PayloadBytes(absl::Span<const std::int64_t> dims, WireDtype dtype,
                                           WireCodec codec = WireCodec::kFp32);

// Fills dtype, codec, block_size, dims, scale_exponent, non_finite, payload_bytes and chunk_count from `tensor`.
void DescribeTensor(const EncodedTensor& tensor, v1::TensorHeader* header);

// One serialized LinkMessage: prefix, then payload. Valid while the tensor's bytes are.
struct OutgoingMessage {
  std::string prefix;
  SharedBytes payload;
  std::size_t size() const { return prefix.size() + payload.size(); }
};

// Chunk `index` of a tensor. `header` is complete; `header_bytes` its serialization (made once a tensor).
OutgoingMessage EncodeChunk(const v1::Fence& fence, std::string_view header_bytes, std::uint32_t index,
                            const SharedBytes& payload);
OutgoingMessage EncodeHello(const v1::Hello& hello);

// A TensorChunk as it arrived; views into the transport's buffers.
struct ChunkView {
  std::string header;  // small; copied
  std::uint32_t index = 0;
  std::uint64_t checksum = 0;
  std::vector<std::string_view> payload;  // pieces, in order
  std::size_t payload_bytes = 0;
};

// Exactly one of the two is set.
struct IncomingMessage {
  std::unique_ptr<v1::Hello> hello;
  std::unique_ptr<ChunkView> chunk;
};

// Parses one LinkMessage from consecutive pieces without copying payload. Unknown fields are skipped;
// fields may come in any order. INVALID_ARGUMENT: not a LinkMessage, or header longer than kMaxHeaderBytes.
absl::StatusOr<IncomingMessage> ParseLinkMessage(absl::Span<const std::string_view> pieces);

// What a receiver knows about the next tensor before it comes: a header with every field set that
// must be equal (all but scale_exponent and non_finite). `header` INVALID_ARGUMENT names the first field
// that differs, with both values; fields are compared before anything is allocated.
absl::Status CheckHeader(const v1::TensorHeader& expected, const v1::TensorHeader& header);

// Puts the chunks of one expected tensor together.
class TensorAssembler {
 public:
  // expected: as for CheckHeader, complete.
  explicit TensorAssembler(v1::TensorHeader expected);

  // True when the tensor is complete. INVALID_ARGUMENT: a header that is not the expected one, missing in
  // the first chunk or present in a later one. DATA_LOSS: checksum, missing or repeated chunk, a chunk of
  // another size than its place has. After an error, throw it away.
  absl::StatusOr<bool> Add(const ChunkView& chunk);

  // After Add returned true, once.
  EncodedTensor Take();
  const v1::TensorHeader& header() const { return header_; }
  // True when the first chunk was accepted.
  bool started() const { return next_chunk_ > 0; }
  // Of the payload, so far.
  std::uint64_t received_bytes() const {
    return std::min<std::uint64_t>(std::uint64_t{next_chunk_} * kChunkBytes, expected_.payload_bytes());
  }

 private:
  v1::TensorHeader expected_;
  v1::TensorHeader header_;
  std::shared_ptr<char[]> buffer_;
  std::uint32_t next_chunk_ = 0;
};

}  // namespace resbm::wire

#endif  // RESBM_PROTO_WIRE_TENSOR_FRAME_H_
