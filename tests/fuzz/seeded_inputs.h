// Inputs for a fuzzer's entry point that are the same on every run: mutations of good inputs, and noise.
#ifndef RESBM_TESTS_FUZZ_SEEDED_INPUTS_H_
#define RESBM_TESTS_FUZZ_SEEDED_INPUTS_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace resbm {

// One to four small changes: a bit, a byte, a run removed, repeated or swapped in from `other`.
inline std::string Mutated(std::string bytes, const std::string& other, std::mt19937_64& random) {
  const int changes = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < changes; ++i) {
    if (bytes.empty()) return bytes;
    const std::size_t at = random() % bytes.size();
    const std::size_t run = random() % std::min<std::size_t>(bytes.size() - at + 1, 40);
    switch (random() % 6) {
      case 0: bytes[at] ^= static_cast<char>(1 << random() % 8); break;
      case 1: bytes[at] = static_cast<char>(random()); break;
      case 2: bytes.erase(at, run); break;
      case 3: bytes.insert(at, bytes.substr(at, run)); break;
      case 4:
        if (!other.empty()) bytes.replace(at, run, other.substr(random() % other.size(), random() % 40));
        break;
      case 5: bytes.resize(at); break;
    }
  }
  return bytes;
}

// Calls the entry point for each of `good`, `rounds` mutations of them, and noise.
inline void RunSeededInputs(const std::vector<std::string>& good, int rounds, std::uint64_t seed) {
  const auto run = [](const std::string& input) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  };
  std::mt19937_64 random(seed);
  for (const std::string& input : good) run(input);
  for (int i = 0; i < rounds; ++i) {
    if (i % 8 == 0) {
      std::string noise(random() % 200, '\0');
      for (char& byte : noise) byte = static_cast<char>(random());
      run(noise);
    } else {
      run(Mutated(good[random() % good.size()], good[random() % good.size()], random));
    }
  }
}

}  // namespace resbm

#endif  // RESBM_TESTS_FUZZ_SEEDED_INPUTS_H_
