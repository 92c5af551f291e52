// int8 and int4 on the wire: blocks of kBlockSize consecutive values of the flattened tensor share a scale.
//
// Payload of n values, in this order, nothing padded or aligned:
//
//   ceil(n / 64) scales   fp32, little-endian: the largest finite magnitude of the block / 127 or / 7
//   int8: n bytes         round(value / scale), two's complement, -127 .. 127
//   int4: ceil(n / 2)     the same, -7 .. 7: the value of even index in the low four bits, the next one in the
//                         high; after an odd last value the high four are 0
//
// So a finite value comes back within half a scale of what it was. NaN becomes 0 and an infinity the end of the
// range: such a tensor is counted as non-finite and its step skipped. Rounds to nearest even. Bit for bit the same
// on every machine whose float is IEEE 754.
#ifndef RESBM_MODEL_CODEC_BLOCK_CODEC_H_
#define RESBM_MODEL_CODEC_BLOCK_CODEC_H_

#include <cstddef>

#include "proto/base/encoded_tensor.h"

namespace resbm::model {

// `payload` has PayloadBytesOf(codec, ., count) bytes, at any address. codec: kInt8 or kInt4.
void EncodeBlocks(const float* values, std::size_t count, WireCodec codec, char* payload);

// Whatever the payload's bytes are, `values` are written in full (a scale that is NaN gives NaN).
void DecodeBlocks(const char* payload, std::size_t count, WireCodec codec, float* values);

}  // namespace resbm::model

#endif  // RESBM_MODEL_CODEC_BLOCK_CODEC_H_
