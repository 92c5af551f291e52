// The wire's codecs: a tensor to the bytes that cross and back. The one implementation, used at cut and
// uncut boundaries alike.
//
//   kFp32  the values
//   kBf16  rounded to nearest even
//   kFp16  value * 2^scale_exponent, rounded to nearest even; the exponent puts the largest finite magnitude
//          in [2^14, 2^15), so that neither large values overflow nor small gradients flush to zero
//   kInt8, kInt4  blocks of 64 values with a scale each, model/codec/block_codec.h; on the CPU, whatever the device
//   kRaw   integers as they are: uint8, int16, int32, int64
//
// NaN and infinite values cross as such (but for kInt8 and kInt4) and are counted.
#ifndef RESBM_MODEL_CODEC_CODEC_H_
#define RESBM_MODEL_CODEC_CODEC_H_

#include "absl/status/statusor.h"
#include "model/codec/extent.h"
#include "model/torch/torch_headers.h"
#include "proto/base/encoded_tensor.h"

namespace resbm::model {

// `tensor`: fp32 on any device and in any layout; integers for kRaw. The payload is row-major, in host
// memory (pinned if the tensor is on a GPU) and complete on return. It may share the tensor's memory: do not
// change the tensor afterwards. Throws c10::Error.
EncodedTensor Encode(const at::Tensor& tensor, WireCodec codec);

// A fresh, contiguous tensor on `device`: fp32, or the integers of kRaw. The payload may lie at any
// address. INVALID_ARGUMENT: dims, dtype, scale exponent and payload size do not fit together. Throws
// c10::Error.
absl::StatusOr<at::Tensor> Decode(const EncodedTensor& encoded, const at::Device& device);

// Of an fp32 tensor by LibTorch operators, for devices whose memory ExtentOf cannot read.
Extent ExtentByOperators(const at::Tensor& tensor);

}  // namespace resbm::model

#endif  // RESBM_MODEL_CODEC_CODEC_H_
