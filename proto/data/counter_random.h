// Random numbers that are a pure function of (seed, purpose, stream, index): the same on every machine and
// with every standard library (std::shuffle and std::uniform_int_distribution are not), and a replay needs
// no saved state.
#ifndef RESBM_PROTO_DATA_COUNTER_RANDOM_H_
#define RESBM_PROTO_DATA_COUNTER_RANDOM_H_

#include <cstdint>

namespace resbm::data {

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014): At(i) is
// the i-th output, from 0, of a generator whose state is `state`.
class CounterRandom {
 public:
  explicit constexpr CounterRandom(std::uint64_t state) : state_(state) {}

  // Streams of one seed are told apart by hashing each further number into the state.
  constexpr CounterRandom Stream(std::uint64_t number) const { return CounterRandom(At(number)); }

  constexpr std::uint64_t At(std::uint64_t index) const {
    std::uint64_t x = state_ + (index + 1) * 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

  // In [0, bound), by the high half of a product; its bias is below bound / 2^64.
  constexpr std::uint64_t Below(std::uint64_t bound, std::uint64_t index) const {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(At(index)) * bound) >> 64);
  }

 private:
  std::uint64_t state_;
};

// First Stream() number below a job's seed: what the numbers are for.
enum RandomPurpose : std::uint64_t { kShufflePurpose = 1, kAugmentPurpose = 2 };

}  // namespace resbm::data

#endif  // RESBM_PROTO_DATA_COUNTER_RANDOM_H_
