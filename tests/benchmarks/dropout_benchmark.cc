// What dropout's mask costs on a CPU: values a second on one thread.
//   bazel run //tests/benchmarks:dropout_benchmark
#include <cstddef>
#include <vector>

#include <benchmark/benchmark.h>

#include "model/blocks/philox.h"

namespace resbm::model {
namespace {

void BM_FillDropoutMask(benchmark::State& state) {
  std::vector<float> mask(static_cast<std::size_t>(state.range(0)));
  PhiloxStream stream{0x299f31d0a4093822, 3, 0};
  for (auto _ : state) {
    ++stream.sample;
    FillDropoutMask(stream, 0x20000000, 1.25f, mask.data(), mask.size());
    benchmark::DoNotOptimize(mask.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
// A sample of 256 positions and a width of 64, 256 and 1,024.
BENCHMARK(BM_FillDropoutMask)->Arg(256 * 64)->Arg(256 * 256)->Arg(256 * 1024);

}  // namespace
}  // namespace resbm::model

BENCHMARK_MAIN();
