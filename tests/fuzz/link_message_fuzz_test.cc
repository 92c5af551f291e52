#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fuzz/seeded_inputs.h"
#include "tests/proto/wire/recording_link.h"
#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {
namespace {

v1::TensorHeader SampleHeader(const EncodedTensor& tensor) {
  v1::TensorHeader header = WorkOf(v1::ACTIVATION, 7, 3);
  *header.mutable_fence() = FenceOf(3, 2);
  header.set_link(1);
  header.set_towards(v1::DOWNSTREAM);
  DescribeTensor(tensor, &header);
  return header;
}

TEST(LinkMessageFuzz, SeededInputsGiveATypedErrorOrTheData) {
  const EncodedTensor tensor = TensorOf({4, 25}, WireDtype::kFloat16, 1);
  const v1::TensorHeader header = SampleHeader(tensor);
  v1::TensorHeader wrong = header;
  wrong.set_dims(0, 5);
  const std::vector<std::string> good = {
      Flat(EncodeChunk(FenceOf(3, 2), header.SerializeAsString(), 0, tensor.payload)),
      Flat(EncodeChunk(FenceOf(3, 2), wrong.SerializeAsString(), 0, tensor.payload)),
      Flat(EncodeChunk(FenceOf(3, 2), header.SerializeAsString(), 1, tensor.payload)),
      Flat(EncodeHello(End(v1::UPSTREAM).Dial(1))),
  };
  RunSeededInputs(good, 20000, 22);
}

// The checksum catches most mutations above: here it is made right again, so that they reach the header.
TEST(LinkMessageFuzz, SeededHeadersUnderARightChecksum) {
  const EncodedTensor tensor = TensorOf({4, 25}, WireDtype::kFloat16, 1);
  const std::string header = SampleHeader(tensor).SerializeAsString();
  std::mt19937_64 random(23);
  for (int round = 0; round < 20000; ++round) {
    const std::string mutated = Mutated(header, header, random);
    const std::string message = Flat(EncodeChunk(FenceOf(3, 2), mutated, 0, tensor.payload));
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(message.data()), message.size());
  }
}

TEST(LinkMessageFuzz, WhatIsEncodedIsDecodedForRandomTensors) {
  std::mt19937_64 random(24);
  constexpr WireDtype kDtypes[] = {WireDtype::kFloat32, WireDtype::kBfloat16, WireDtype::kFloat16, WireDtype::kUint8,
                                   WireDtype::kInt64};
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int64_t> dims(random() % (kMaxDims + 1));
    std::int64_t left = 200000;
    for (std::int64_t& dim : dims) {
      const std::int64_t longest = round % 5 == 0 ? 2 : std::min<std::int64_t>(left, 40);
      dim = static_cast<std::int64_t>(random() % longest) + (round % 7 != 0);
      left = std::max<std::int64_t>(1, left / std::max<std::int64_t>(1, dim));
    }
    const EncodedTensor tensor = TensorOf(dims, kDtypes[random() % 5], random() % 1000);
    const v1::TensorHeader header = SampleHeader(tensor);
    TensorAssembler assembler(header);
    for (std::uint32_t index = 0; index < header.chunk_count(); ++index) {
      const std::string bytes =
          Flat(EncodeChunk(header.fence(), header.SerializeAsString(), index, tensor.payload));
      const auto message = ParseLinkMessage(Split(bytes, random));
      ASSERT_TRUE(message.ok()) << message.status();
      const auto complete = assembler.Add(*message->chunk);
      ASSERT_TRUE(complete.ok()) << complete.status();
      ASSERT_EQ(*complete, index + 1 == header.chunk_count());
    }
    ASSERT_TRUE(Equal(assembler.Take(), tensor));
  }
}

}  // namespace
}  // namespace resbm::wire
