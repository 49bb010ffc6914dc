// Sources of random numbers, one class for each kind of device. Both save their state in PyTorch's byte layout, so that
// states can be exchanged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/device.h"
#include "base/fork_lock.h"

namespace cresset {

class Generator {
 public:
  static constexpr uint64_t default_seed = 67280421310721;

  explicit Generator(Device device) : device(device) {}
  virtual ~Generator() = default;
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  const Device device;      // where its numbers are made
  void* wrapper = nullptr;  // the Python object, borrowed

  // Whoever draws holds this lock. The functions of random_kernels.h take it themselves; the members below do not.
  ForkLock& mutex() const { return mutex_; }

  // Start again from `seed`.
  virtual void set_seed(uint64_t seed) = 0;
  // Start again from 64 bits of the operating system's randomness, and return them.
  uint64_t seed_from_system();
  // The seed that was set last.
  uint64_t initial_seed() const { return seed_; }

  // The state in the bytes of torch.get_rng_state() or torch.cuda.get_rng_state(). Loading raises an error for anything
  // else.
  virtual std::size_t state_size() const = 0;
  virtual void save_state(uint8_t* bytes) const = 0;
  virtual void load_state(const uint8_t* bytes, std::size_t size) = 0;
  // Another that continues where this one stands.
  virtual std::unique_ptr<Generator> clone() const = 0;

 protected:
  uint64_t seed_ = default_seed;

 private:
  mutable ForkLock mutex_;
};

// The CPU's: a Mersenne Twister (mt19937) that gives, for the same seed, the numbers that PyTorch's CPU generator
// gives.
class Twister final : public Generator {
 public:
  static constexpr std::size_t state_bytes = 5056;
  static constexpr int word_count = 624;

  explicit Twister(uint64_t seed = default_seed) : Generator(Device{}) { Twister::set_seed(seed); }

  // The twister uses the lower 32 bits. Forgets the cached normal samples.
  void set_seed(uint64_t seed) override;

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
  // Leaving the tempering to the reader keeps the serial part short; the rest can be vectorized and shared by threads.
  void draw_untempered(uint32_t* out, int64_t count);

  static constexpr uint32_t temper(uint32_t word) {
    word ^= word >> 11;
    word ^= word << 7 & 0x9d2c5680u;
    word ^= word << 15 & 0xefc60000u;
    return word ^ word >> 18;
  }

  // Box-Muller makes normal samples in pairs; the second of a pair waits here and belongs to the state.
  std::optional<double> next_double_normal;
  std::optional<float> next_float_normal;

  std::size_t state_size() const override { return state_bytes; }
  void save_state(uint8_t* bytes) const override;
  void load_state(const uint8_t* bytes, std::size_t size) override;
  std::unique_ptr<Generator> clone() const override;

 private:
  // PyTorch counts the draw before it looks: one word "left" means that the next draw twists first.
  bool next_is_stale() const { return left_ == 1; }
  void advance();

  std::array<uint32_t, word_count> words_;
  int left_;
  int next_;
};

// A CUDA device's: Philox, which makes the number at any place of the stream from the seed and the place. So all that
// is kept here is how far the stream was used, in words of 32 bits; a kernel is told where to start, and each element
// finds its own words.
class Philox final : public Generator {
 public:
  static constexpr std::size_t state_bytes = 16;

  // Where a kernel starts. While a graph is captured the words are counted from the graph's start, and `place` is
  // memory of the device with the seed and the offset of the graph's start, which whoever replays it sets.
  struct Start {
    uint64_t seed, offset;
    const void* place;
  };

  explicit Philox(Device device, uint64_t seed = default_seed) : Generator(device) { Philox::set_seed(seed); }

  void set_seed(uint64_t seed) override;
  // The next `words` words: they belong to the caller. The count is rounded up to whole groups of four. Takes the lock.
  Start take(uint64_t words);

  uint64_t offset() const { return offset_; }
  void set_offset(uint64_t offset);

  // Between these two, `take` counts for a graph; gives how many words a replay uses.
  void begin_capture(const void* place);
  uint64_t end_capture();

  std::size_t state_size() const override { return state_bytes; }
  void save_state(uint8_t* bytes) const override;
  void load_state(const uint8_t* bytes, std::size_t size) override;
  std::unique_ptr<Generator> clone() const override;

 private:
  uint64_t offset_ = 0, captured_ = 0;
  const void* place_ = nullptr;
};

// The generators of all who name none. They start from the operating system's randomness.
Twister& default_generator();
Generator& default_generator(Device device);  // of the CPU, or of a CUDA device with a number

}  // namespace cresset
