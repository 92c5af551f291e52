// The narrow set of LibTorch headers that model/ uses: tensors, the operators, autograd through
// Tensor::backward. Not torch/torch.h and no torch::nn, which cost 10 to 20 s more in every file.
#ifndef RESBM_MODEL_TORCH_TORCH_HEADERS_H_
#define RESBM_MODEL_TORCH_TORCH_HEADERS_H_

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#endif  // RESBM_MODEL_TORCH_TORCH_HEADERS_H_
