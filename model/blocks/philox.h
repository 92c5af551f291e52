// Dropout's random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), whose
// every number is a function of a key and a counter, so that a mask is the same wherever and whenever it is made.
//
// The key is that of the place in the model. The counter is {block, epoch, sample}: 32, 32 (the low ones) and 64 bits.
// A sample's values stand in four runs of blocks = ceil(count / 4): value i takes word i / blocks of block i % blocks.
#ifndef RESBM_MODEL_BLOCKS_PHILOX_H_
#define RESBM_MODEL_BLOCKS_PHILOX_H_

#include <cstddef>
#include <cstdint>

namespace resbm::model {

inline constexpr int kPhiloxRounds = 10;
inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53;  // of the counter's first word
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;  // of its third
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9;        // what the key grows by each round
inline constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85;

// Which random numbers: one sample's at one place of the model in one epoch.
struct PhiloxStream {
  std::uint64_t key = 0;
  std::uint64_t epoch = 0;
  std::uint64_t sample = 0;
};

// Writes `scale` where the value's random word is at least `threshold` (of 2^32), else 0. count at most 2^34.
void FillDropoutMask(const PhiloxStream& stream, std::uint32_t threshold, float scale, float* mask, std::size_t count);

}  // namespace resbm::model

#endif  // RESBM_MODEL_BLOCKS_PHILOX_H_
