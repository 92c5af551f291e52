#include <string>

#include <gtest/gtest.h>

#include "proto/base/safetensors.h"
#include "tests/fuzz/seeded_inputs.h"

namespace resbm {
namespace {

TEST(SafetensorsFuzz, SeededInputsGiveATypedErrorOrAFileThatRoundTrips) {
  const std::string data(64, 'd');
  const auto view = [&](std::size_t size) { return std::string_view(data).substr(0, size); };
  SafetensorsFile file;
  file.tensors = {{"stem.conv.weight", "F32", {2, 1, 2, 2}, view(32)}, {"n", "I64", {}, view(8)}, {"e", "U8", {0}, {}}};
  file.metadata = {{"format", "pt"}};
  SafetensorsFile small;
  small.tensors = {{"b", "BF16", {3}, view(6)}};
  RunSeededInputs({*SerializeSafetensors(file), *SerializeSafetensors(small), *SerializeSafetensors({})}, 30000, 7);
}

}  // namespace
}  // namespace resbm
