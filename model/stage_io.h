// What enters and leaves a stage, between the wire's form and tensors: checked before anything is allocated.
#ifndef RESBM_MODEL_STAGE_IO_H_
#define RESBM_MODEL_STAGE_IO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/blocks/pass.h"
#include "model/spec.h"
#include "model/stage_model.h"
#include "model/torch/torch_headers.h"
#include "proto/base/encoded_tensor.h"

namespace resbm::model {

// All of them throw c10::Error besides.
class StageIo {
 public:
  StageIo(const StageSpec& spec, bool channels_last, c10::Device device);

  // The model's input: images become (x / 255 - mean) / std, tokens int64. INVALID_ARGUMENT: not what the spec says;
  // a token outside the vocabulary.
  absl::StatusOr<at::Tensor> ModelInput(const EncodedTensors& input) const;
  // int64 on the device: classes [samples], or token ids [samples, T], -1 = masked. INVALID_ARGUMENT: none, another
  // shape, a label out of range.
  absl::StatusOr<at::Tensor> Labels(const EncodedTensor* target, std::int64_t samples) const;

  // What crossed. INVALID_ARGUMENT: not what the boundary says; `samples` 0 = any number.
  absl::StatusOr<Tensors> DecodeActivations(const BoundarySpec& boundary, const EncodedTensors& encoded,
                                            std::int64_t samples) const;
  absl::StatusOr<Tensors> DecodeGradients(const BoundarySpec& boundary, const EncodedTensors& encoded,
                                          std::int64_t samples) const;
  // Counts non-finite values under the boundary's name.
  EncodedTensors EncodeActivations(const BoundarySpec& boundary, const Tensors& tensors,
                                   std::vector<NonFiniteCount>& counts) const;
  EncodedTensors EncodeGradients(const BoundarySpec& boundary, const Tensors& gradients,
                                 std::vector<NonFiniteCount>& counts) const;

 private:
  at::Tensor Laid(const at::Tensor& decoded) const;
  absl::StatusOr<at::Tensor> DecodeOne(const EncodedTensor& encoded, const std::string& what, WireCodec codec,
                                       const WireTensor& tensor, std::int64_t samples) const;

  const StageSpec& spec_;
  const bool channels_last_;
  const c10::Device device_;
  const std::string where_;
  at::Tensor mean_, std_;  // [channels, 1, 1]; first stage of images
};

}  // namespace resbm::model

#endif  // RESBM_MODEL_STAGE_IO_H_
