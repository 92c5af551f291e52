#include "proto/wire/tensor_frame.h"

#include <xxhash.h>

#include <cstdlib>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {
namespace {

constexpr WireDtype kDtypes[] = {WireDtype::kFloat32, WireDtype::kBfloat16, WireDtype::kFloat16, WireDtype::kUint8,
                                 WireDtype::kInt64,   WireDtype::kInt32,    WireDtype::kInt16};

v1::TensorHeader HeaderOf(const EncodedTensor& tensor, const v1::Fence& fence) {
  v1::TensorHeader header = WorkOf(v1::ACTIVATION, 7, 3);
  *header.mutable_fence() = fence;
  header.set_link(1);
  header.set_towards(v1::DOWNSTREAM);
  DescribeTensor(tensor, &header);
  return header;
}

// What a receiver expects of such a tensor: without what only the sender knows.
v1::TensorHeader Unscaled(v1::TensorHeader header) {
  header.clear_scale_exponent();
  header.clear_non_finite();
  return header;
}

TEST(WireNumbers, OfDtypesEqualTheProtocols) {
  EXPECT_EQ(static_cast<int>(WireDtype::kFloat32), v1::FLOAT32);
  EXPECT_EQ(static_cast<int>(WireDtype::kBfloat16), v1::BFLOAT16);
  EXPECT_EQ(static_cast<int>(WireDtype::kFloat16), v1::FLOAT16);
  EXPECT_EQ(static_cast<int>(WireDtype::kUint8), v1::UINT8);
  EXPECT_EQ(static_cast<int>(WireDtype::kInt64), v1::INT64);
  EXPECT_EQ(static_cast<int>(WireDtype::kInt32), v1::INT32);
  EXPECT_EQ(static_cast<int>(WireDtype::kInt16), v1::INT16);
  EXPECT_EQ(std::size(kDtypes), static_cast<std::size_t>(v1::WireDtype_MAX)) << "a dtype that the C++ enum lacks";
}

TEST(WireNumbers, OfCodecsEqualTheProtocols) {
  EXPECT_EQ(static_cast<int>(WireCodec::kFp32), v1::CODEC_FP32);
  EXPECT_EQ(static_cast<int>(WireCodec::kBf16), v1::CODEC_BF16);
  EXPECT_EQ(static_cast<int>(WireCodec::kFp16), v1::CODEC_FP16);
  EXPECT_EQ(static_cast<int>(WireCodec::kRaw), v1::CODEC_RAW);
  EXPECT_EQ(static_cast<int>(WireCodec::kInt8), v1::CODEC_INT8);
  EXPECT_EQ(static_cast<int>(WireCodec::kInt4), v1::CODEC_INT4);
  EXPECT_EQ(6, static_cast<int>(v1::Codec_MAX)) << "a codec that the C++ enum lacks";
}

TEST(ChunkCount, IsAtLeastOneAndRoundsUp) {
  EXPECT_EQ(ChunkCount(0), 1u);
  EXPECT_EQ(ChunkCount(1), 1u);
  EXPECT_EQ(ChunkCount(kChunkBytes), 1u);
  EXPECT_EQ(ChunkCount(kChunkBytes + 1), 2u);
  EXPECT_EQ(ChunkCount(16 * kChunkBytes), 16u);
}

TEST(PayloadBytes, IsTheProductOfDimsAndElement) {
  EXPECT_EQ(*PayloadBytes({}, WireDtype::kInt64), 8u);
  EXPECT_EQ(*PayloadBytes({16, 4, 28, 28}, WireDtype::kFloat16), 16u * 4 * 28 * 28 * 2);
  EXPECT_EQ(*PayloadBytes({5, 0, 3}, WireDtype::kFloat32), 0u);
  EXPECT_EQ(*PayloadBytes({0, INT64_MAX, INT64_MAX}, WireDtype::kFloat32), 0u);
}

TEST(PayloadBytes, OfABlockwiseCodecAreScalesAndIntegers) {
  EXPECT_EQ(*PayloadBytes({2, 65}, WireDtype::kUint8, WireCodec::kInt8), 3u * 4 + 130);
  EXPECT_EQ(*PayloadBytes({2, 65}, WireDtype::kUint8, WireCodec::kInt4), 3u * 4 + 65);
  EXPECT_EQ(*PayloadBytes({0, 65}, WireDtype::kUint8, WireCodec::kInt4), 0u);
  EXPECT_EQ(PayloadBytes({INT64_MAX}, WireDtype::kUint8, WireCodec::kInt4).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(DescribeTensor, SaysTheBlockSizeOfABlockwiseCodec) {
  EncodedTensor tensor = TensorOf({142}, WireDtype::kUint8, 1);
  v1::TensorHeader header;
  DescribeTensor(tensor, &header);
  EXPECT_EQ(header.block_size(), 0u);
  tensor.codec = WireCodec::kInt8;
  tensor.dims = {2, 65};
  DescribeTensor(tensor, &header);
  EXPECT_EQ(header.block_size(), 64u);
  EXPECT_EQ(header.codec(), v1::CODEC_INT8);
  EXPECT_EQ(header.payload_bytes(), 142u);
  v1::TensorHeader other = header;
  other.set_block_size(32);
  EXPECT_EQ(CheckHeader(header, other).code(), absl::StatusCode::kInvalidArgument);
}

TEST(PayloadBytes, RefusesWhatNoTensorHas) {
  const auto code = [](std::vector<std::int64_t> dims, WireDtype dtype) {
    return PayloadBytes(dims, dtype).status().code();
  };
  EXPECT_EQ(code({2, -1}, WireDtype::kUint8), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, -1}, WireDtype::kUint8), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({INT64_MAX, 3}, WireDtype::kUint8), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({INT64_MAX}, WireDtype::kUint8), absl::StatusCode::kInvalidArgument) << "chunks cannot be counted";
  EXPECT_EQ(code(std::vector<std::int64_t>(9, 1), WireDtype::kUint8), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({1}, static_cast<WireDtype>(0)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({1}, static_cast<WireDtype>(v1::WireDtype_MAX + 1)), absl::StatusCode::kInvalidArgument);
}

TEST(ChunkChecksum, IsXxh3OverHeaderIndexAndPayloadSeededByTheFence) {
  const std::string payload = RandomBytes(1000, 1);
  const std::string whole = std::string("header") + std::string("\x04\x03\x02\x01", 4) + payload;
  const std::uint64_t expected = XXH3_64bits_withSeed(whole.data(), whole.size(), std::uint64_t{5} << 32 | 9);
  for (const std::size_t cut : {0, 1, 500, 1000}) {
    const std::vector<std::string_view> pieces = {std::string_view(payload).substr(0, cut),
                                                  std::string_view(payload).substr(cut)};
    EXPECT_EQ(ChunkChecksum(FenceOf(5, 9), "header", 0x01020304, pieces), expected) << cut;
  }
  const std::vector<std::string_view> pieces = {payload};
  EXPECT_NE(ChunkChecksum(FenceOf(5, 8), "header", 0x01020304, pieces), expected);
  EXPECT_NE(ChunkChecksum(FenceOf(4, 9), "header", 0x01020304, pieces), expected);
}

TEST(EncodeChunk, WritesWhatTheGeneratedCodeWrites) {
  const v1::Fence fence = FenceOf(2, 3);
  const EncodedTensor tensor = TensorOf({3, 100000}, WireDtype::kFloat16, 4);
  const std::string header = HeaderOf(tensor, fence).SerializeAsString();
  for (std::uint32_t index = 0; index < 3; ++index) {
    const OutgoingMessage message = EncodeChunk(fence, header, index, tensor.payload);
    v1::LinkMessage parsed;
    ASSERT_TRUE(parsed.ParseFromString(Flat(message)));
    ASSERT_TRUE(parsed.has_chunk());
    EXPECT_EQ(parsed.chunk().header(), index == 0 ? header : "");
    EXPECT_EQ(parsed.chunk().index(), index);
    EXPECT_EQ(parsed.chunk().payload(), tensor.payload.view().substr(index * kChunkBytes, kChunkBytes));
    EXPECT_EQ(parsed.SerializeAsString(), Flat(message));
    EXPECT_EQ(message.size(), Flat(message).size());
  }
}

TEST(EncodeChunk, DoesNotCopyThePayload) {
  const EncodedTensor tensor = TensorOf({3, 100000}, WireDtype::kFloat16, 4);
  const OutgoingMessage message = EncodeChunk(FenceOf(1, 1), "h", 1, tensor.payload);
  EXPECT_EQ(message.payload.data(), tensor.payload.data() + kChunkBytes);
  EXPECT_EQ(message.payload.owner(), tensor.payload.owner());
}

TEST(EncodeChunk, OfAnEmptyTensorIsOneEmptyChunk) {
  const OutgoingMessage message = EncodeChunk(FenceOf(1, 1), "h", 0, SharedBytes());
  EXPECT_EQ(message.payload.size(), 0u);
  v1::LinkMessage parsed;
  ASSERT_TRUE(parsed.ParseFromString(Flat(message)));
  EXPECT_EQ(parsed.chunk().header(), "h");
  EXPECT_EQ(parsed.SerializeAsString(), Flat(message));
}

TEST(EncodeHello, WritesWhatTheGeneratedCodeWrites) {
  v1::Hello hello;
  hello.set_protocol_version(1);
  hello.set_job_id("job");
  v1::LinkMessage parsed;
  ASSERT_TRUE(parsed.ParseFromString(Flat(EncodeHello(hello))));
  EXPECT_EQ(parsed.hello().job_id(), "job");
}

TEST(ParseLinkMessage, ReadsWhatTheGeneratedCodeWrites) {
  std::mt19937_64 random(1);
  v1::LinkMessage message;
  message.mutable_chunk()->set_header("header bytes");
  message.mutable_chunk()->set_index(300);
  message.mutable_chunk()->set_checksum(0x0123456789abcdef);
  message.mutable_chunk()->set_payload(RandomBytes(5000, 2));
  const std::string bytes = message.SerializeAsString();
  for (int round = 0; round < 200; ++round) {
    const auto parsed = ParseLinkMessage(Split(bytes, random));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ASSERT_NE(parsed->chunk, nullptr);
    EXPECT_EQ(parsed->hello, nullptr);
    EXPECT_EQ(parsed->chunk->header, "header bytes");
    EXPECT_EQ(parsed->chunk->index, 300u);
    EXPECT_EQ(parsed->chunk->checksum, 0x0123456789abcdefu);
    EXPECT_EQ(parsed->chunk->payload_bytes, 5000u);
    std::string payload;
    for (const std::string_view piece : parsed->chunk->payload) {
      EXPECT_TRUE(piece.data() >= bytes.data() && piece.data() + piece.size() <= bytes.data() + bytes.size());
      payload += piece;
    }
    EXPECT_EQ(payload, message.chunk().payload());
  }
}

TEST(ParseLinkMessage, ReadsAHello) {
  std::mt19937_64 random(1);
  v1::LinkMessage message;
  message.mutable_hello()->set_protocol_version(9);
  message.mutable_hello()->set_link_key(RandomBytes(16, 3));
  const std::string bytes = message.SerializeAsString();
  for (int round = 0; round < 50; ++round) {
    const auto parsed = ParseLinkMessage(Split(bytes, random));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ASSERT_NE(parsed->hello, nullptr);
    EXPECT_EQ(parsed->hello->SerializeAsString(), message.hello().SerializeAsString());
  }
}

TEST(ParseLinkMessage, SkipsUnknownFieldsAndTakesFieldsInAnyOrder) {
  // chunk { payload "ab", 9: varint, 10: fixed64, 11: bytes, 12: fixed32, index 5 }, then field 15 of the message.
  const std::string chunk =
      std::string("\x22\x02" "ab" "\x48\x96\x01" "\x51" "12345678" "\x5a\x01" "x" "\x65" "1234" "\x10\x05");
  const std::string bytes = std::string("\x12") + static_cast<char>(chunk.size()) + chunk + "\x78\x01";
  v1::LinkMessage generated;
  ASSERT_TRUE(generated.ParseFromString(bytes)) << "the test's own bytes";
  const std::string_view view = bytes;
  const auto parsed = ParseLinkMessage({&view, 1});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->chunk->index, 5u);
  ASSERT_EQ(parsed->chunk->payload.size(), 1u);
  EXPECT_EQ(parsed->chunk->payload[0], "ab");
}

// Scenario 15: at the default message limit of gRPC, one byte below and above, and around a chunk.
TEST(RoundTrip, OfEverySizeInEveryDtypeOverRandomSplits) {
  std::mt19937_64 random(15);
  const v1::Fence fence = FenceOf(3, 2);
  constexpr std::int64_t kSizes[] = {0,           1,           kChunkBytes - 1, kChunkBytes, kChunkBytes + 1,
                                     4194304 - 1, 4194304, 4194304 + 1};
  for (const WireDtype dtype : kDtypes) {
    for (const std::int64_t bytes : kSizes) {
      // As many whole elements as come next to the size, from below and from above.
      const std::int64_t element = static_cast<std::int64_t>(SizeOf(dtype));
      for (const std::int64_t elements : {bytes / element, (bytes + element - 1) / element}) {
        const EncodedTensor tensor = TensorOf({1, elements}, dtype, random() % 1000);
        const v1::TensorHeader header = HeaderOf(tensor, fence);
        const std::string header_bytes = header.SerializeAsString();
        ASSERT_LE(header_bytes.size(), kMaxHeaderBytes);
        TensorAssembler assembler(Unscaled(header));
        for (std::uint32_t index = 0; index < header.chunk_count(); ++index) {
          const std::string message = Flat(EncodeChunk(fence, header_bytes, index, tensor.payload));
          const auto parsed = ParseLinkMessage(Split(message, random));
          ASSERT_TRUE(parsed.ok()) << parsed.status();
          const auto complete = assembler.Add(*parsed->chunk);
          ASSERT_TRUE(complete.ok()) << complete.status();
          EXPECT_TRUE(assembler.started());
          ASSERT_EQ(*complete, index + 1 == header.chunk_count());
        }
        EXPECT_EQ(assembler.header().SerializeAsString(), header_bytes);
        ASSERT_TRUE(Equal(assembler.Take(), tensor)) << "dtype " << static_cast<int>(dtype) << ", " << elements;
      }
    }
  }
}

TEST(RoundTrip, TheLongestHeaderFits) {
  EncodedTensor tensor;
  tensor.dims.assign(kMaxDims, INT64_MAX);
  tensor.scale_exponent = -256;
  tensor.non_finite = UINT64_MAX;
  v1::TensorHeader header = HeaderOf(tensor, FenceOf(UINT64_MAX, UINT64_MAX));
  header.set_step(UINT64_MAX);
  header.set_link(UINT32_MAX);
  header.set_micro_batch(UINT32_MAX);
  header.set_tensor_index(UINT32_MAX);
  header.set_tensor_count(UINT32_MAX);
  header.set_block_size(UINT32_MAX);
  header.set_payload_bytes(UINT64_MAX);
  header.set_chunk_count(UINT32_MAX);
  EXPECT_LE(header.SerializeAsString().size(), kMaxHeaderBytes);
}

}  // namespace
}  // namespace resbm::wire
