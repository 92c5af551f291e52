#include "model/profiler_range.h"

#include <torch/csrc/profiler/stubs/base.h>

namespace resbm::model {

// LibTorch's own way to NVTX: its CUDA library puts it there when it is loaded, so that this compiles without CUDA.
using torch::profiler::impl::cudaStubs;

bool ProfilerRange::Available() { return cudaStubs()->enabled(); }

ProfilerRange::ProfilerRange(const char* name) { cudaStubs()->rangePush(name); }

ProfilerRange::~ProfilerRange() { cudaStubs()->rangePop(); }

}  // namespace resbm::model
