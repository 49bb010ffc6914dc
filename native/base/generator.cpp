// Seeding and states of the generators, and the Mersenne Twister's recurrence.
#include "base/generator.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "base/error.h"
#include "base/instruction_set.h"

namespace cresset {
namespace {

constexpr int words = Twister::word_count;
constexpr int shift = 397;

// The layout that torch.get_rng_state() returns. The normal_x and normal_rho fields are zero and unread.
struct SavedState {
  uint64_t initial_seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t words[Twister::word_count];
  double normal_x;
  double normal_y;
  double normal_rho;
  int32_t has_double_normal;
  int32_t padding_1;
  float float_normal;
  uint8_t has_float_normal;
  uint8_t padding_2[3];
};
static_assert(sizeof(SavedState) == Twister::state_bytes);

[[gnu::always_inline]] inline uint32_t twist(uint32_t current, uint32_t following) {
  const uint32_t mixed = (current & 0x80000000u) | (following & 0x7fffffffu);
  return mixed >> 1 ^ (-(following & 1u) & 0x9908b0dfu);
}

// The next 624 words in place. Each loop reads one word ahead of those it writes, or at least 227 away: both vectorize.
struct TwistAll {
  template <class Fma>
  CRESSET_INLINE void run(uint32_t* w) {
    for (int i = 0; i < words - shift; ++i) w[i] = w[i + shift] ^ twist(w[i], w[i + 1]);
    for (int i = words - shift; i < words - 1; ++i) w[i] = w[i - (words - shift)] ^ twist(w[i], w[i + 1]);
    w[words - 1] = w[shift - 1] ^ twist(w[words - 1], w[0]);
  }
};

}  // namespace

uint64_t Generator::seed_from_system() {
  std::random_device device;
  const uint64_t upper = device();
  set_seed(upper << 32 | device());
  return seed_;
}

void Twister::set_seed(uint64_t seed) {
  seed_ = seed;
  next_double_normal.reset();
  next_float_normal.reset();
  words_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < words; ++i) words_[i] = 1812433253u * (words_[i - 1] ^ words_[i - 1] >> 30) + i;
  left_ = 1;
  next_ = 0;
}

void Twister::advance() {
  run_vectorized<TwistAll>(words_.data());
  left_ = words + 1;
  next_ = 0;
}

void Twister::draw_untempered(uint32_t* out, int64_t count) {
  while (count > 0) {
    if (next_is_stale()) advance();
    const int taken = static_cast<int>(std::min<int64_t>(count, left_ - 1));
    std::memcpy(out, words_.data() + next_, taken * sizeof(uint32_t));
    left_ -= taken;
    next_ += taken;
    out += taken;
    count -= taken;
  }
}

void Twister::save_state(uint8_t* bytes) const {
  SavedState state{};
  state.initial_seed = seed_;
  state.left = left_;
  state.seeded = 1;
  state.next = static_cast<uint64_t>(next_);
  std::copy(words_.begin(), words_.end(), state.words);
  state.normal_y = next_double_normal.value_or(0.0);
  state.has_double_normal = next_double_normal.has_value();
  state.float_normal = next_float_normal.value_or(0.0f);
  state.has_float_normal = next_float_normal.has_value();
  std::memcpy(bytes, &state, sizeof state);
}

void Twister::load_state(const uint8_t* bytes, std::size_t size) {
  check(size == state_bytes, "set_state: expected a state of size ", state_bytes,
        " but found the input RNG state size to be ", size);
  SavedState state;
  std::memcpy(&state, bytes, sizeof state);
  // Words left and position must agree, or a later draw would read past the last word.
  const bool fresh = state.left == 1 && state.next == 0;
  const bool consistent = state.next >= 1 && state.next <= words && state.left == words + 1 - int64_t(state.next);
  check(state.seeded && (fresh || consistent), "set_state: Invalid mt19937 state, with ", state.left, " words left at ",
        state.next);
  seed_ = state.initial_seed;
  left_ = state.left;
  next_ = static_cast<int>(state.next);
  std::transform(std::begin(state.words), std::end(state.words), words_.begin(),
                 [](uint64_t word) { return static_cast<uint32_t>(word); });
  next_double_normal = state.has_double_normal ? std::optional(state.normal_y) : std::nullopt;
  next_float_normal = state.has_float_normal ? std::optional(state.float_normal) : std::nullopt;
}

std::unique_ptr<Generator> Twister::clone() const {
  auto copy = std::make_unique<Twister>();
  copy->words_ = words_;
  copy->left_ = left_;
  copy->next_ = next_;
  copy->seed_ = seed_;
  copy->next_double_normal = next_double_normal;
  copy->next_float_normal = next_float_normal;
  return copy;
}

// ---- Philox

void Philox::set_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

Philox::Start Philox::take(uint64_t words) {
  std::lock_guard lock(mutex());
  uint64_t& count = place_ ? captured_ : offset_;
  const Start start{seed_, count, place_};
  count += (words + 3) & ~uint64_t{3};
  return start;
}

void Philox::set_offset(uint64_t offset) {
  check(offset % 4 == 0, "set_offset: offset must be a multiple of 4, got ", offset);
  offset_ = offset;
}

void Philox::begin_capture(const void* place) {
  std::lock_guard lock(mutex());
  place_ = place;
  captured_ = 0;
}

uint64_t Philox::end_capture() {
  std::lock_guard lock(mutex());
  place_ = nullptr;
  return captured_;
}

void Philox::save_state(uint8_t* bytes) const {
  std::memcpy(bytes, &seed_, sizeof seed_);
  std::memcpy(bytes + sizeof seed_, &offset_, sizeof offset_);
}

// States of eight bytes, without the offset, are of old versions.
void Philox::load_state(const uint8_t* bytes, std::size_t size) {
  check(size == state_bytes || size == sizeof seed_, "set_state: expected a state of size ", state_bytes,
        " but found the input RNG state size to be ", size);
  uint64_t offset = 0;
  if (size == state_bytes) std::memcpy(&offset, bytes + sizeof seed_, sizeof offset);
  set_offset(offset);
  std::memcpy(&seed_, bytes, sizeof seed_);
}

std::unique_ptr<Generator> Philox::clone() const {
  auto copy = std::make_unique<Philox>(device, seed_);
  copy->offset_ = offset_;
  return copy;
}

// ---- the default ones

Twister& default_generator() {
  static Twister* the = [] {
    auto* generator = new Twister;
    generator->seed_from_system();
    return generator;
  }();
  return *the;
}

Generator& default_generator(Device device) {
  if (device.is_cpu()) return default_generator();
  check(!device.is_meta() && device.index >= 0, "there is no generator of random numbers for '", device, "'");
  constexpr int most = 128;
  static auto* all = new std::array<std::array<std::unique_ptr<Philox>, most>, kDeviceTypes>;
  static auto& lock = *new ForkLock;
  std::lock_guard guard(lock);
  auto& the = (*all)[static_cast<size_t>(device.type)][static_cast<size_t>(device.index)];
  if (!the) {
    the = std::make_unique<Philox>(device);
    the->seed_from_system();
  }
  return *the;
}

}  // namespace cresset
