// Scenario 22: a malformed tensor gives INVALID_ARGUMENT or DATA_LOSS before any large allocation.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/wire/tensor_frame.h"
#include "tests/proto/wire/sample_tensors.h"

namespace {

// The largest single allocation since it was last set to 0.
std::atomic<std::size_t> largest_allocation{0};

void* Allocate(std::size_t size, std::size_t alignment) {
  std::size_t largest = largest_allocation.load();
  while (size > largest && !largest_allocation.compare_exchange_weak(largest, size)) {
  }
  return alignment > 0 ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                       : std::malloc(size == 0 ? 1 : size);
}

void* AllocateOrThrow(std::size_t size, std::size_t alignment) {
  void* bytes = Allocate(size, alignment);
  if (bytes == nullptr) throw std::bad_alloc();
  return bytes;
}

}  // namespace

void* operator new(std::size_t size) { return AllocateOrThrow(size, 0); }
void* operator new[](std::size_t size) { return AllocateOrThrow(size, 0); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 0); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t a) { return AllocateOrThrow(size, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t size, std::align_val_t a) {
  return AllocateOrThrow(size, static_cast<std::size_t>(a));
}
void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return Allocate(size, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return Allocate(size, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }

namespace resbm::wire {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kTensorBytes = 2 * 8 * 100 * 400;  // three chunks

class MalformedTensor : public ::testing::Test {
 protected:
  MalformedTensor() : tensor_(TensorOf({8, 100, 400}, WireDtype::kFloat16, 1)) {
    header_ = WorkOf(v1::ACTIVATION, 7, 3);
    *header_.mutable_fence() = fence_;
    header_.set_link(1);
    header_.set_towards(v1::DOWNSTREAM);
    DescribeTensor(tensor_, &header_);
    expected_ = header_;
    expected_.clear_scale_exponent();
    expected_.clear_non_finite();
  }

  // Through the bytes of a message, as from a peer; its checksum is right.
  absl::StatusOr<bool> Give(TensorAssembler* assembler, const std::string& header_bytes, std::uint32_t index) {
    const std::string message = Flat(EncodeChunk(fence_, header_bytes, index, tensor_.payload));
    const std::string_view view = message;
    const auto parsed = ParseLinkMessage({&view, 1});
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return assembler->Add(*parsed->chunk);
  }

  ChunkView Chunk(std::uint32_t index) {
    ChunkView chunk;
    if (index == 0) chunk.header = header_.SerializeAsString();
    chunk.index = index;
    chunk.payload = {tensor_.payload.view().substr(index * kChunkBytes, kChunkBytes)};
    chunk.payload_bytes = chunk.payload[0].size();
    chunk.checksum = ChunkChecksum(fence_, chunk.header, index, chunk.payload);
    return chunk;
  }

  const v1::Fence fence_ = FenceOf(4, 2);
  const EncodedTensor tensor_;
  v1::TensorHeader header_;
  v1::TensorHeader expected_;
};

struct Change {
  const char* field;
  std::function<void(v1::TensorHeader*)> make;
};

const std::vector<Change>& Changes() {
  static const std::vector<Change> kChanges = {
      {"kind", [](auto* h) { h->set_kind(v1::GRADIENT); }},
      {"kind", [](auto* h) { h->set_kind(static_cast<v1::TensorKind>(77)); }},
      {"fence", [](auto* h) { h->mutable_fence()->set_epoch(3); }},
      {"fence", [](auto* h) { h->mutable_fence()->set_generation(1); }},
      {"fence", [](auto* h) { h->clear_fence(); }},
      {"work", [](auto* h) { h->set_step(8); }},
      {"work", [](auto* h) { h->set_evaluation(7); }},
      {"work", [](auto* h) { h->clear_step(); }},
      {"link", [](auto* h) { h->set_link(2); }},
      {"towards", [](auto* h) { h->set_towards(v1::UPSTREAM); }},
      {"micro_batch", [](auto* h) { h->set_micro_batch(4); }},
      {"tensor_index", [](auto* h) { h->set_tensor_index(1); }},
      {"tensor_count", [](auto* h) { h->set_tensor_count(2); }},
      {"dtype", [](auto* h) { h->set_dtype(v1::BFLOAT16); }},
      {"dtype", [](auto* h) { h->set_dtype(static_cast<v1::WireDtype>(-1)); }},
      {"codec", [](auto* h) { h->set_codec(v1::CODEC_BF16); }},
      {"block_size", [](auto* h) { h->set_block_size(64); }},
      {"dims", [](auto* h) { h->set_dims(0, 0); }},
      {"dims", [](auto* h) { h->set_dims(1, -100); }},
      {"dims", [](auto* h) { h->set_dims(2, INT64_MAX); }},
      {"dims", [](auto* h) { h->add_dims(1); }},
      {"dims", [](auto* h) { h->clear_dims(); }},
      {"dims", [](auto* h) { h->mutable_dims()->SwapElements(0, 1); }},
      {"payload_bytes", [](auto* h) { h->set_payload_bytes(h->payload_bytes() + 1); }},
      {"payload_bytes", [](auto* h) { h->set_payload_bytes(UINT64_MAX); }},
      {"chunk_count", [](auto* h) { h->set_chunk_count(4); }},
      {"chunk_count", [](auto* h) { h->set_chunk_count(0); }},
      {"scale_exponent", [](auto* h) { h->set_scale_exponent(257); }},
      {"scale_exponent", [](auto* h) { h->set_scale_exponent(INT32_MIN); }},
  };
  return kChanges;
}

TEST_F(MalformedTensor, EveryFieldThatDiffersIsRefusedByNameBeforeAllocation) {
  for (const Change& change : Changes()) {
    v1::TensorHeader header = header_;
    change.make(&header);
    EXPECT_THAT(std::string(CheckHeader(expected_, header).message()), HasSubstr(change.field));

    TensorAssembler assembler(expected_);
    ChunkView chunk = Chunk(0);
    chunk.header = header.SerializeAsString();
    chunk.checksum = ChunkChecksum(fence_, chunk.header, 0, chunk.payload);
    largest_allocation = 0;
    const auto result = assembler.Add(chunk);
    EXPECT_LT(largest_allocation, 4096u) << change.field;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << change.field;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(std::string("header field ") + change.field));
    EXPECT_FALSE(assembler.started());
  }
}

TEST_F(MalformedTensor, TheTensorItselfIsAcceptedAndAllocatedOnce) {
  // Also shows that the counter of the other tests sees the tensor's buffer.
  TensorAssembler assembler(expected_);
  largest_allocation = 0;
  ASSERT_TRUE(assembler.Add(Chunk(0)).ok());
  EXPECT_GE(largest_allocation, kTensorBytes);
  largest_allocation = 0;
  ASSERT_TRUE(assembler.Add(Chunk(1)).ok());
  const auto complete = assembler.Add(Chunk(2));
  ASSERT_TRUE(complete.ok()) << complete.status();
  EXPECT_TRUE(*complete);
  EXPECT_LT(largest_allocation, 4096u);
  EXPECT_TRUE(Equal(assembler.Take(), tensor_));
}

TEST_F(MalformedTensor, OnlyFp16IsScaled) {
  v1::TensorHeader expected = expected_;
  expected.set_codec(v1::CODEC_FP32);
  v1::TensorHeader header = expected;
  EXPECT_TRUE(CheckHeader(expected, header).ok());
  header.set_scale_exponent(1);
  EXPECT_EQ(CheckHeader(expected, header).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(MalformedTensor, AFirstChunkWithoutHeaderOrWithGarbageForOneIsRefusedBeforeAllocation) {
  for (const std::string& header : {std::string(), std::string("\xff\xff\xff")}) {
    TensorAssembler assembler(expected_);
    largest_allocation = 0;
    EXPECT_EQ(Give(&assembler, header, 0).status().code(), absl::StatusCode::kInvalidArgument);
    // The test's own copy of the message is one chunk.
    EXPECT_LT(largest_allocation, kTensorBytes);
  }
}

TEST_F(MalformedTensor, AHeaderInALaterChunkIsRefused) {
  TensorAssembler assembler(expected_);
  ASSERT_TRUE(assembler.Add(Chunk(0)).ok());
  ChunkView chunk = Chunk(1);
  chunk.header = header_.SerializeAsString();
  chunk.checksum = ChunkChecksum(fence_, chunk.header, 1, chunk.payload);
  EXPECT_EQ(assembler.Add(chunk).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(MalformedTensor, AMissingFirstChunkIsDataLossBeforeAllocation) {
  TensorAssembler assembler(expected_);
  largest_allocation = 0;
  const auto result = assembler.Add(Chunk(1));
  EXPECT_LT(largest_allocation, 4096u);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("chunk 1 came where chunk 0"));
}

TEST_F(MalformedTensor, AMissingOrRepeatedLaterChunkIsDataLoss) {
  for (const std::uint32_t wrong : {0, 2, 3}) {
    TensorAssembler assembler(expected_);
    ASSERT_TRUE(assembler.Add(Chunk(0)).ok());
    ChunkView chunk = Chunk(wrong % 3);
    chunk.index = wrong;
    EXPECT_EQ(assembler.Add(chunk).status().code(), absl::StatusCode::kDataLoss) << wrong;
  }
  TensorAssembler assembler(expected_);
  for (std::uint32_t index = 0; index < 3; ++index) ASSERT_TRUE(assembler.Add(Chunk(index)).ok());
  ChunkView beyond;
  beyond.index = 3;
  beyond.checksum = ChunkChecksum(fence_, "", 3, {});
  EXPECT_EQ(assembler.Add(beyond).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(MalformedTensor, DamageAnywhereUnderTheChecksumIsDataLossBeforeAllocation) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 50; ++round) {
    TensorAssembler assembler(expected_);
    ChunkView chunk = Chunk(0);
    std::string payload(chunk.payload[0]);
    switch (round % 3) {
      case 0: payload[random() % payload.size()] ^= static_cast<char>(1 << random() % 8); break;
      case 1: chunk.header[random() % chunk.header.size()] ^= static_cast<char>(1 << random() % 8); break;
      case 2: chunk.checksum ^= std::uint64_t{1} << random() % 64; break;
    }
    chunk.payload = {payload};
    largest_allocation = 0;
    EXPECT_EQ(assembler.Add(chunk).status().code(), absl::StatusCode::kDataLoss);
    EXPECT_LT(largest_allocation, 4096u);
  }
}

TEST_F(MalformedTensor, AChunkOfAnotherSizeThanItsPlaceIsDataLoss) {
  for (const std::uint32_t place : {0, 2}) {
    for (const int change : {-1, 1}) {
      TensorAssembler assembler(expected_);
      for (std::uint32_t index = 0; index < place; ++index) ASSERT_TRUE(assembler.Add(Chunk(index)).ok());
      ChunkView chunk = Chunk(place);
      std::string payload(chunk.payload[0]);
      payload.resize(payload.size() + change, 'x');
      chunk.payload = {payload};
      chunk.payload_bytes = payload.size();
      chunk.checksum = ChunkChecksum(fence_, chunk.header, place, chunk.payload);
      largest_allocation = 0;
      EXPECT_EQ(assembler.Add(chunk).status().code(), absl::StatusCode::kDataLoss);
      EXPECT_LT(largest_allocation, 4096u);
    }
  }
}

TEST_F(MalformedTensor, BytesThatAreNoMessageAreRefusedWithoutAllocation) {
  const std::string header_of_600 = std::string("\x0a\xd8\x04", 3) + std::string(600, 'h');
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"", "neither"},
      {std::string("\x00\x01", 2), "tag"},
      {"\x12", "ends within"},
      {"\x12\x05", "5 bytes where 0 are left"},
      {std::string("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), "bytes where 0 are left"},
      {std::string("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11), "longer than 64 bits"},
      {std::string("\x12\x00\x12\x00", 4), "more than one"},
      {std::string("\x0a\x00\x12\x00", 4), "more than one"},
      {std::string("\x0a\x01\xff", 3), "Hello cannot be read"},
      {std::string("\x12\x06\x10\xff\xff\xff\xff\x7f", 8), "chunk index"},
      {std::string("\x12\x05\x19\x01\x02\x03\x04", 7), "ends within"},
      {std::string("\x12\x03\x22\x05x", 5), "5 bytes where 1"},
      {std::string("\x12\x01\x23", 3), "wire type 3"},
      {std::string("\x12\xdb\x04", 3) + header_of_600, "header of 600 bytes"},
      {std::string("\x0a\x81\x20", 3) + std::string(4097, 'x'), "Hello of 4097 bytes"},
      {std::string("\x7d\x01\x02", 3), "ends within"},
  };
  for (const auto& [bytes, message] : cases) {
    const std::string_view view = bytes;
    largest_allocation = 0;
    const auto parsed = ParseLinkMessage({&view, 1});
    EXPECT_LT(largest_allocation, 4096u) << message;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(message));
  }
  EXPECT_EQ(ParseLinkMessage({}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace resbm::wire
