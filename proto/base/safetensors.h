// The safetensors file format (https://github.com/huggingface/safetensors, format description in its
// README): 8 bytes little-endian header length, a JSON header, the tensors' bytes. Weights travel and are
// stored in it. No LibTorch, no protobuf.
#ifndef RESBM_PROTO_BASE_SAFETENSORS_H_
#define RESBM_PROTO_BASE_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace resbm {

// One tensor of a file. `data` belongs to whoever holds the file's bytes.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // "F32", "F64", "F16", "BF16", "I64", "U8", ...
  std::vector<std::int64_t> shape;
  std::string_view data;  // row-major, little-endian
};

struct SafetensorsFile {
  std::vector<SafetensorsEntry> tensors;  // in the order of their data
  std::map<std::string, std::string> metadata;
};

// Views into `bytes`, which must outlive the result. Any bytes are safe to give. INVALID_ARGUMENT: what is
// wrong, and with which tensor (header length, JSON, dtype, shape times size unequal to the range, ranges
// that overlap, leave holes or reach beyond the end, a name twice).
absl::StatusOr<SafetensorsFile> ParseSafetensors(std::string_view bytes);

// The file's bytes; tensors in the order given, header padded with spaces to 8 bytes. INVALID_ARGUMENT: an
// unknown dtype, a size that does not fit its shape, a name twice.
absl::StatusOr<std::string> SerializeSafetensors(const SafetensorsFile& file);

}  // namespace resbm

#endif  // RESBM_PROTO_BASE_SAFETENSORS_H_
