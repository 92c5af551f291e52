// Bytes that LibTorch's tensors hold, live and at their peak: what a stage's memory plan is checked against.
#ifndef RESBM_MODEL_TORCH_MEMORY_H_
#define RESBM_MODEL_TORCH_MEMORY_H_

#include <cstdint>

#include <c10/core/Device.h>

namespace resbm::model {

struct AllocatorUse {
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;  // since ResetAllocatorPeak
};

// Puts a counting allocator in front of LibTorch's for the CPU, once per process. Tensors made before are not
// counted. `limit_bytes`: an allocation beyond fails as out of memory; 0 = no limit; the last call's counts.
void CountCpuAllocations(std::uint64_t limit_bytes);

// Of the whole process. On a GPU: from the caching allocator's statistics.
AllocatorUse AllocatorUseOf(const c10::Device& device);
void ResetAllocatorPeak(const c10::Device& device);

}  // namespace resbm::model

#endif  // RESBM_MODEL_TORCH_MEMORY_H_
