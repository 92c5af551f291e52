// What programs share that write a safetensors file for a parity test: collecting tensors, random ones, and main.
#ifndef RESBM_TESTS_PARITY_DUMP_FILE_H_
#define RESBM_TESTS_PARITY_DUMP_FILE_H_

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/encoded_tensor.h"
#include "proto/base/safetensors.h"

namespace resbm::model {

template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

// Throws std::runtime_error.
class Dump {
 public:
  void Add(const std::string& name, const std::string& dtype, std::vector<std::int64_t> shape, std::string bytes);
  // fp32 and integers; not what a codec has compressed.
  void AddEncoded(const std::string& name, const EncodedTensor& encoded);
  // All tensors of a safetensors file, as prefix + name.
  void AddFile(const std::string& prefix, const std::string& safetensors);
  void AddNumber(const std::string& name, double value);
  void Write(const std::string& path) const;

 private:
  std::vector<SafetensorsEntry> tensors_;
  std::vector<std::string> bytes_;
};

// fp32 from -1 to 1, the same for the same seed.
EncodedTensor Uniform(const std::vector<std::int64_t>& dims, std::uint32_t seed);

// Calls `dump` with the only argument, a folder. Exit code.
int DumpMain(int argc, char** argv, const std::function<void(const std::string& folder)>& dump);

}  // namespace resbm::model

#endif  // RESBM_TESTS_PARITY_DUMP_FILE_H_
