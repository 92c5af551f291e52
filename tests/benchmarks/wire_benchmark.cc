// What the wire costs without a network, by tensor size: checksums and encoding on the way out, checking and
// putting together on the way in. Bytes are payload; on one thread.
//   bazel run //tests/benchmarks:wire_benchmark
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "proto/wire/tensor_frame.h"
#include "tests/proto/wire/sample_tensors.h"

namespace resbm::wire {
namespace {

struct Sample {
  explicit Sample(std::int64_t bytes) : tensor(TensorOf({bytes}, WireDtype::kUint8, 1)) {
    header = WorkOf(v1::ACTIVATION, 1, 0);
    *header.mutable_fence() = fence;
    DescribeTensor(tensor, &header);
    header_bytes = header.SerializeAsString();
  }

  const v1::Fence fence = FenceOf(1, 1);
  EncodedTensor tensor;
  v1::TensorHeader header;
  std::string header_bytes;
};

void Count(benchmark::State& state, const Sample& sample) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(sample.tensor.payload.size()));
}

void BM_Encode(benchmark::State& state) {
  const Sample sample(state.range(0));
  for (auto _ : state) {
    for (std::uint32_t index = 0; index < sample.header.chunk_count(); ++index) {
      benchmark::DoNotOptimize(EncodeChunk(sample.fence, sample.header_bytes, index, sample.tensor.payload));
    }
  }
  Count(state, sample);
}

// Messages in two pieces, as gRPC gives them at best: what is before the payload, and the payload.
void BM_ParseAndAssemble(benchmark::State& state) {
  const Sample sample(state.range(0));
  std::vector<OutgoingMessage> messages;
  for (std::uint32_t index = 0; index < sample.header.chunk_count(); ++index) {
    messages.push_back(EncodeChunk(sample.fence, sample.header_bytes, index, sample.tensor.payload));
  }
  for (auto _ : state) {
    TensorAssembler assembler(sample.header);
    for (const OutgoingMessage& message : messages) {
      const std::string_view pieces[2] = {message.prefix, message.payload.view()};
      const auto parsed = ParseLinkMessage(pieces);
      if (!assembler.Add(*parsed->chunk).ok()) state.SkipWithError("refused");
    }
    benchmark::DoNotOptimize(assembler.Take());
  }
  Count(state, sample);
}

void BM_ThereAndBack(benchmark::State& state) {
  const Sample sample(state.range(0));
  for (auto _ : state) {
    TensorAssembler assembler(sample.header);
    for (std::uint32_t index = 0; index < sample.header.chunk_count(); ++index) {
      const OutgoingMessage message = EncodeChunk(sample.fence, sample.header_bytes, index, sample.tensor.payload);
      const std::string_view pieces[2] = {message.prefix, message.payload.view()};
      const auto parsed = ParseLinkMessage(pieces);
      if (!assembler.Add(*parsed->chunk).ok()) state.SkipWithError("refused");
    }
    benchmark::DoNotOptimize(assembler.Take());
  }
  Count(state, sample);
}

// A micro-batch of 16 at 784 bytes, a chunk, a tensor of many.
#define RESBM_SIZES ->Arg(16 * 784)->Arg(256 << 10)->Arg(4 << 20)->Arg(64 << 20)
BENCHMARK(BM_Encode) RESBM_SIZES;
BENCHMARK(BM_ParseAndAssemble) RESBM_SIZES;
BENCHMARK(BM_ThereAndBack) RESBM_SIZES;

}  // namespace
}  // namespace resbm::wire

BENCHMARK_MAIN();
