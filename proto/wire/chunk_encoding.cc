#include <xxhash.h>

#include <algorithm>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::wire {
namespace {

// Field numbers and types of LinkMessage and TensorChunk in link.proto as tags: number << 3 | wire type.
constexpr char kLinkMessageChunkTag = 2 << 3 | 2;
constexpr char kHeaderTag = 1 << 3 | 2;
constexpr char kIndexTag = 2 << 3 | 0;
constexpr char kChecksumTag = 3 << 3 | 1;
constexpr char kPayloadTag = 4 << 3 | 2;

void AppendVarint(std::uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

template <typename T>
void StoreLittleEndian(T value, char* out) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out[i] = static_cast<char>(value >> (8 * i));
}

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

}  // namespace

std::uint64_t ChunkChecksum(const v1::Fence& fence, std::string_view header, std::uint32_t index,
                            absl::Span<const std::string_view> payload) {
  // One a thread: a state is 576 bytes, aligned, and made anew for each chunk otherwise.
  thread_local const std::unique_ptr<XXH3_state_t, FreeState> state(XXH3_createState());
  if (state == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset_withSeed(state.get(), fence.epoch() << 32 | fence.generation());
  XXH3_64bits_update(state.get(), header.data(), header.size());
  char index_bytes[4];
  StoreLittleEndian(index, index_bytes);
  XXH3_64bits_update(state.get(), index_bytes, sizeof(index_bytes));
  for (const std::string_view piece : payload) XXH3_64bits_update(state.get(), piece.data(), piece.size());
  return XXH3_64bits_digest(state.get());
}

std::uint32_t ChunkCount(std::uint64_t payload_bytes) {
  const std::uint64_t chunks = payload_bytes / kChunkBytes + (payload_bytes % kChunkBytes != 0);
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, chunks));
}

absl::StatusOr<std::uint64_t> PayloadBytes(absl::Span<const std::int64_t> dims, WireDtype dtype, WireCodec codec) {
  if (dims.size() > static_cast<std::size_t>(kMaxDims)) {
    return absl::InvalidArgumentError(absl::StrCat("a tensor of ", dims.size(), " dims; at most ", kMaxDims, " cross"));
  }
  if (SizeOf(dtype) == 0) return absl::InvalidArgumentError(absl::StrCat("unknown dtype ", static_cast<int>(dtype)));
  std::uint64_t values = 1;
  bool overflow = false;
  bool zero = false;
  for (const std::int64_t dim : dims) {
    if (dim < 0) return absl::InvalidArgumentError(absl::StrCat("a dim of ", dim));
    zero |= dim == 0;
    overflow |= __builtin_mul_overflow(values, static_cast<std::uint64_t>(dim), &values);
  }
  if (zero) return 0;
  const std::optional<std::uint64_t> bytes = PayloadBytesOf(codec, dtype, values);
  // What chunk_count can say: 2^32 - 1 chunks.
  if (overflow || !bytes.has_value() || *bytes > std::uint64_t{0xffffffff} * kChunkBytes) {
    return absl::InvalidArgumentError(absl::StrCat("dims of more than 2^50 bytes: [", absl::StrJoin(dims, ","), "]"));
  }
  return *bytes;
}

void DescribeTensor(const EncodedTensor& tensor, v1::TensorHeader* header) {
  header->set_dtype(static_cast<v1::WireDtype>(tensor.dtype));
  header->set_codec(static_cast<v1::Codec>(tensor.codec));
  header->set_block_size(BlockSizeOf(tensor.codec));
  header->mutable_dims()->Assign(tensor.dims.begin(), tensor.dims.end());
  header->set_scale_exponent(tensor.scale_exponent);
  header->set_non_finite(tensor.non_finite);
  header->set_payload_bytes(tensor.payload.size());
  header->set_chunk_count(ChunkCount(tensor.payload.size()));
}

OutgoingMessage EncodeChunk(const v1::Fence& fence, std::string_view header_bytes, std::uint32_t index,
                            const SharedBytes& payload) {
  const std::size_t begin = std::min(static_cast<std::size_t>(index) * kChunkBytes, payload.size());
  const std::size_t size = std::min(kChunkBytes, payload.size() - begin);
  const std::string_view header = index == 0 ? header_bytes : std::string_view();
  const std::string_view piece = payload.view().substr(begin, size);
  const std::uint64_t checksum = ChunkChecksum(fence, header, index, {&piece, 1});

  // As the generated code would write it: absent where the value is the default.
  std::string fields;
  fields.reserve(header.size() + 32);
  if (!header.empty()) {
    fields.push_back(kHeaderTag);
    AppendVarint(header.size(), &fields);
    fields += header;
  }
  if (index != 0) {
    fields.push_back(kIndexTag);
    AppendVarint(index, &fields);
  }
  if (checksum != 0) {
    char bytes[8];
    StoreLittleEndian(checksum, bytes);
    fields.push_back(kChecksumTag);
    fields.append(bytes, sizeof(bytes));
  }
  if (size > 0) {
    fields.push_back(kPayloadTag);
    AppendVarint(size, &fields);
  }
  OutgoingMessage message;
  message.prefix.reserve(fields.size() + 6);
  message.prefix.push_back(kLinkMessageChunkTag);
  AppendVarint(fields.size() + size, &message.prefix);
  message.prefix += fields;
  if (size > 0) message.payload = SharedBytes(payload.owner(), payload.data() + begin, size);
  return message;
}

OutgoingMessage EncodeHello(const v1::Hello& hello) {
  v1::LinkMessage message;
  *message.mutable_hello() = hello;
  return {message.SerializeAsString(), SharedBytes()};
}

}  // namespace resbm::wire
