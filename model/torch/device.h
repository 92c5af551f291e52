// Where a stage computes: the CPU, or a CUDA device where LibTorch was built with CUDA.
#ifndef RESBM_MODEL_TORCH_DEVICE_H_
#define RESBM_MODEL_TORCH_DEVICE_H_

#include <string>
#include <string_view>

#include <c10/core/Device.h>

#include "absl/status/statusor.h"
#include "model/spec.h"

namespace resbm::model {

// "auto" (the first GPU, else the CPU), "cpu", "cuda" or "cuda:N" to "cpu" or "cuda:N". INVALID_ARGUMENT:
// another word. FAILED_PRECONDITION: not there.
absl::StatusOr<std::string> ResolveDeviceName(std::string_view device);

// Of a resolved name; the same errors.
absl::StatusOr<c10::Device> DeviceOf(std::string_view device);

// Threads, determinism and precision of this process: what the first law depends on.
void ConfigureProcess(const ComputeOptions& options);

// Waits until the device's current stream has done all its work. Nothing to wait for on the CPU.
void SynchroniseStream(const c10::Device& device);

// "DEFAULT", "AVX2", "AVX512", ...: the instruction set that LibTorch's kernels use.
std::string CpuCapabilityName();

}  // namespace resbm::model

#endif  // RESBM_MODEL_TORCH_DEVICE_H_
