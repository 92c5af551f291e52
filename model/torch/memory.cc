#include "model/torch/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstring>
#include <limits>

#if RESBM_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace resbm::model {
namespace {

std::atomic<std::uint64_t> live{0};
std::atomic<std::uint64_t> peak{0};
std::atomic<std::uint64_t> limit{0};

// In front of each block its size; as long as LibTorch's alignment, so that data stays aligned. The pointer
// handed out is also the context, which raw_allocate needs.
constexpr std::size_t kPrefix = 64;

void Release(void* data) {
  if (data == nullptr) return;
  char* block = static_cast<char*>(data) - kPrefix;
  std::size_t size = 0;
  std::memcpy(&size, block, sizeof(size));
  live.fetch_sub(size, std::memory_order_relaxed);
  c10::free_cpu(block);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (size == 0) return {nullptr, nullptr, &Release, cpu};
    const std::uint64_t bound = limit.load(std::memory_order_relaxed);
    const std::uint64_t held = live.fetch_add(size, std::memory_order_relaxed) + size;
    void* block = nullptr;
    try {
      TORCH_CHECK_WITH(OutOfMemoryError,
                       size < std::numeric_limits<std::size_t>::max() / 2 && (bound == 0 || held <= bound), size,
                       " bytes more would make ", held, ", the memory limit is ", bound);
      block = c10::alloc_cpu(size + kPrefix);
    } catch (...) {
      live.fetch_sub(size, std::memory_order_relaxed);
      throw;
    }
    std::uint64_t highest = peak.load(std::memory_order_relaxed);
    while (held > highest && !peak.compare_exchange_weak(highest, held, std::memory_order_relaxed)) {
    }
    std::memcpy(block, &size, sizeof(size));
    void* data = static_cast<char*>(block) + kPrefix;
    return {data, data, &Release, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Release; }
  void copy_data(void* destination, const void* source, std::size_t count) const override {
    default_copy_data(destination, source, count);
  }
};

}  // namespace

void CountCpuAllocations(std::uint64_t limit_bytes) {
  limit.store(limit_bytes, std::memory_order_relaxed);
  static CountingAllocator* const allocator = [] {
    auto* made = new CountingAllocator;  // tensors may outlive every static
    c10::SetCPUAllocator(made, /*priority=*/1);
    return made;
  }();
  (void)allocator;
}

AllocatorUse AllocatorUseOf(const c10::Device& device) {
#if RESBM_CUDA
  if (device.is_cuda()) {
    const auto all = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index()).allocated_bytes[0];
    return {static_cast<std::uint64_t>(all.current), static_cast<std::uint64_t>(all.peak)};
  }
#endif
  return {live.load(std::memory_order_relaxed), peak.load(std::memory_order_relaxed)};
}

void ResetAllocatorPeak(const c10::Device& device) {
#if RESBM_CUDA
  if (device.is_cuda()) {
    c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
    return;
  }
#endif
  peak.store(live.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace resbm::model
