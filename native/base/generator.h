// The CPU's source of random numbers: a Mersenne Twister (mt19937) that gives, for the same seed, the numbers that
// PyTorch's CPU generator gives, and that saves its state in PyTorch's byte layout, so that states can be exchanged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace cresset {

class Generator {
 public:
  static constexpr uint64_t default_seed = 67280421310721;
  static constexpr std::size_t state_bytes = 5056;
  static constexpr int word_count = 624;

  explicit Generator(uint64_t seed = default_seed) { set_seed(seed); }
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Whoever draws holds this lock. The functions of random_kernels.h take it themselves; the members below do not.
  std::mutex& mutex() const { return mutex_; }

  // Start again from `seed`, of which the twister uses the lower 32 bits. Forgets the cached normal samples.
  void set_seed(uint64_t seed);
  // Start again from 64 bits of the operating system's randomness, and return them.
  uint64_t seed_from_system();
  // The seed that was set last.
  uint64_t initial_seed() const { return seed_; }

  // The next 32 bits.
  uint32_t random() {
    if (next_is_stale()) advance();
    --left_;
    return temper(words_[next_++]);
  }

  // The next 64 bits: two draws, the upper half first.
  uint64_t random64() {
    const uint64_t upper = random();
    return upper << 32 | random();
  }

  // The next `count` draws as they stand in the twister's state: temper(out[i]) is what random() would have returned.
  // Leaving the tempering to the reader keeps the serial part short; the rest can be vectorised and shared by threads.
  void draw_untempered(uint32_t* out, int64_t count);

  static constexpr uint32_t temper(uint32_t word) {
    word ^= word >> 11;
    word ^= word << 7 & 0x9d2c5680u;
    word ^= word << 15 & 0xefc60000u;
    return word ^ word >> 18;
  }

  void* wrapper = nullptr;  // the Python object, borrowed

  // Box-Muller makes normal samples in pairs; the second of a pair waits here and belongs to the state.
  std::optional<double> next_double_normal;
  std::optional<float> next_float_normal;

  // The state in the 5056 bytes of torch.get_rng_state(). Loading raises an error for anything else.
  void save_state(uint8_t* bytes) const;
  void load_state(const uint8_t* bytes, std::size_t size);
  // Continue where `other` stands. The caller holds the lock of both.
  void copy_state(const Generator& other);

 private:
  // PyTorch counts the draw before it looks: one word "left" means that the next draw twists first.
  bool next_is_stale() const { return left_ == 1; }
  void advance();

  std::array<uint32_t, word_count> words_;
  int left_;
  int next_;
  uint64_t seed_;
  mutable std::mutex mutex_;
};

// The generator of all who name none. It starts from the operating system's randomness.
Generator& default_generator();

}  // namespace cresset
