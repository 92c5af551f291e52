// Bytes of a weights file: a typed error, or views within the bytes that survive a round trip.
#include <cstdlib>
#include <string>

#include "proto/base/safetensors.h"
#include "tests/fuzz/seeded_inputs.h"

namespace {

void Check(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto file = resbm::ParseSafetensors(bytes);
  if (!file.ok()) {
    Check(file.status().code() == absl::StatusCode::kInvalidArgument);
    return 0;
  }
  for (const resbm::SafetensorsEntry& tensor : file->tensors) {
    Check(tensor.data.data() >= bytes.data() && tensor.data.data() + tensor.data.size() <= bytes.data() + bytes.size());
  }
  const auto again = resbm::SerializeSafetensors(*file);
  Check(again.ok());
  const auto same = resbm::ParseSafetensors(*again);
  Check(same.ok() && same->metadata == file->metadata && same->tensors.size() == file->tensors.size());
  for (std::size_t i = 0; i < same->tensors.size(); ++i) {
    Check(same->tensors[i].name == file->tensors[i].name && same->tensors[i].dtype == file->tensors[i].dtype);
    Check(same->tensors[i].shape == file->tensors[i].shape && same->tensors[i].data == file->tensors[i].data);
  }
  return 0;
}
