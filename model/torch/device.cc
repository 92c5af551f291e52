#include "model/torch/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"

#if RESBM_CUDA
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace resbm::model {
namespace {

int CudaDevices() {
#if RESBM_CUDA
  return c10::cuda::device_count();  // 0 where there is no driver
#else
  return 0;
#endif
}

// Debian builds Abseil as C++14: its string_view is a type of its own.
absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

absl::StatusOr<std::string> ResolveDeviceName(std::string_view device) {
  if (device == "cpu") return std::string("cpu");
  if (device == "auto") return std::string(CudaDevices() > 0 ? "cuda:0" : "cpu");
  absl::string_view rest = View(device);
  if (!absl::ConsumePrefix(&rest, "cuda")) {
    return absl::InvalidArgumentError(absl::StrCat("device \"", View(device), "\": use auto, cpu or cuda:N"));
  }
  int index = 0;
  if (!rest.empty() && (!absl::ConsumePrefix(&rest, ":") || !absl::SimpleAtoi(rest, &index) || index < 0)) {
    return absl::InvalidArgumentError(absl::StrCat("device \"", View(device), "\": use cuda:N with N from 0"));
  }
#if RESBM_CUDA
  if (const int devices = CudaDevices(); index >= devices) {
    return absl::FailedPreconditionError(absl::StrCat("device \"", View(device), "\" is not there: this machine has ",
                                                      devices,
                                                      " CUDA devices; see nvidia-smi and CUDA_VISIBLE_DEVICES"));
  }
  return absl::StrCat("cuda:", index);
#else
  return absl::FailedPreconditionError(absl::StrCat(
      "device \"", View(device), "\": built without CUDA; build with --config=cuda and a CUDA wheel of PyTorch"));
#endif
}

absl::StatusOr<c10::Device> DeviceOf(std::string_view device) {
  RESBM_ASSIGN_OR_RETURN(const std::string name, ResolveDeviceName(device));
  return c10::Device(name);
}

void ConfigureProcess(const ComputeOptions& options) {
  at::Context& context = at::globalContext();
#if RESBM_CUDA
  // cuBLAS reads it when its first handle is made.
  if (options.deterministic) ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
#endif
  context.setDeterministicAlgorithms(options.deterministic, /*warn_only=*/false);
  // Else every fresh tensor is filled with NaN first.
  context.setDeterministicFillUninitializedMemory(false);
  context.setDeterministicCuDNN(options.deterministic);
  context.setBenchmarkCuDNN(false);
  context.setFloat32MatmulPrecision("highest");
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  at::set_num_threads(options.threads);
}

void SynchroniseStream(const c10::Device& device) {
#if RESBM_CUDA
  if (device.is_cuda()) c10::cuda::getCurrentCUDAStream(device.index()).synchronize();
#endif
}

std::string CpuCapabilityName() { return at::get_cpu_capability(); }

}  // namespace resbm::model
