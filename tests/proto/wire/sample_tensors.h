// Tensors, headers and messages that the wire's tests share.
#ifndef RESBM_TESTS_PROTO_WIRE_SAMPLE_TENSORS_H_
#define RESBM_TESTS_PROTO_WIRE_SAMPLE_TENSORS_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/base/encoded_tensor.h"
#include "proto/resbm/v1/link.pb.h"
#include "proto/wire/tensor_frame.h"

namespace resbm::wire {

inline v1::Fence FenceOf(std::uint64_t epoch, std::uint64_t generation) {
  v1::Fence fence;
  fence.set_epoch(epoch);
  fence.set_generation(generation);
  return fence;
}

inline WireCodec CodecOf(WireDtype dtype) {
  switch (dtype) {
    case WireDtype::kFloat32: return WireCodec::kFp32;
    case WireDtype::kBfloat16: return WireCodec::kBf16;
    case WireDtype::kFloat16: return WireCodec::kFp16;
    default: return WireCodec::kRaw;
  }
}

inline std::string RandomBytes(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t word = random();
    for (std::size_t j = i; j < std::min(size, i + 8); ++j) bytes[j] = static_cast<char>(word >> (8 * (j - i)));
  }
  return bytes;
}

inline EncodedTensor TensorOf(std::vector<std::int64_t> dims, WireDtype dtype, std::uint64_t seed) {
  EncodedTensor tensor;
  tensor.dtype = dtype;
  tensor.codec = CodecOf(dtype);
  tensor.scale_exponent = dtype == WireDtype::kFloat16 ? static_cast<int>(seed % 277) - 113 : 0;
  tensor.non_finite = seed % 3;
  std::size_t bytes = SizeOf(dtype);
  for (const std::int64_t dim : dims) bytes *= static_cast<std::size_t>(dim);
  tensor.dims = std::move(dims);
  tensor.payload = SharedBytes::CopyOf(RandomBytes(bytes, seed));
  return tensor;
}

// As its owner gives it to Send: which tensor it is.
inline v1::TensorHeader WorkOf(v1::TensorKind kind, std::uint64_t step, std::uint32_t micro_batch) {
  v1::TensorHeader header;
  header.set_kind(kind);
  header.set_step(step);
  header.set_micro_batch(micro_batch);
  header.set_tensor_count(1);
  return header;
}

// As its owner gives it to Expect: also its shape.
inline v1::TensorHeader ExpectedOf(v1::TensorHeader header, const EncodedTensor& tensor) {
  DescribeTensor(tensor, &header);
  header.clear_scale_exponent();
  header.clear_non_finite();
  header.clear_payload_bytes();
  header.clear_chunk_count();
  return header;
}

inline bool Equal(const EncodedTensor& a, const EncodedTensor& b) {
  return a.codec == b.codec && a.dtype == b.dtype && a.dims == b.dims && a.scale_exponent == b.scale_exponent &&
         a.non_finite == b.non_finite && a.payload.view() == b.payload.view();
}

// The bytes of a message as one buffer.
inline std::string Flat(const OutgoingMessage& message) {
  return message.prefix + std::string(message.payload.view());
}

// The same bytes as consecutive pieces of random sizes, some empty.
inline std::vector<std::string_view> Split(std::string_view bytes, std::mt19937_64& random) {
  std::vector<std::string_view> pieces;
  while (!bytes.empty()) {
    const std::size_t longest = random() % 4 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 20);
    const std::size_t size = random() % (longest + 1);
    pieces.push_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return pieces;
}

}  // namespace resbm::wire

#endif  // RESBM_TESTS_PROTO_WIRE_SAMPLE_TENSORS_H_
