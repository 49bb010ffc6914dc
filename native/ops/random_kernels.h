// Fill contiguous memory with random numbers: the same numbers as PyTorch's CPU functions for the same generator state.
// Each function takes the generator's lock. Checks of arguments (p in [0, 1], std >= 0, ...) are the caller's.
// T is an arithmetic type, Half or BFloat16.
//
// Note [Random numbers and strides]
// PyTorch fills a strided output in the order of its memory (the dimension of the smallest stride runs fastest), not of
// its indices. So for an output that is not contiguous: fill a contiguous buffer, and copy it out in that order. Only
// normal_ also takes another algorithm for it: fill_normal_serial instead of fill_normal.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/generator.h"
#include "base/half.h"

namespace cresset {

namespace random_detail {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
// The bits of an integer type without its sign, or of a float type's mantissa.
template <class T>
inline constexpr int digits = std::numeric_limits<T>::digits;
template <>
inline constexpr int digits<Half> = 11;
template <>
inline constexpr int digits<BFloat16> = 8;
// The type in which PyTorch computes before it rounds to T.
template <class T>
using ComputeType = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T, class Value>
T convert(Value value) {
  if constexpr (is_half<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// The distance between neighbors of an integer too large for T to hold exactly.
template <class T>
int64_t spacing(int64_t value) {
  const uint64_t magnitude = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  return int64_t(1) << (std::bit_width(magnitude) - digits<T>);
}

// The loops of random_kernels.cpp: they do not lock, and know no 16-bit floats.
void uniforms(float* out, int64_t count, float from, float to, Twister&);
void uniforms(double* out, int64_t count, double from, double to, Twister&);
// `count` is a multiple of 16.
void normal_groups(float* out, int64_t count, float mean, float std, Twister&);
void normal_groups(double* out, int64_t count, double mean, double std, Twister&);
void exponentials(float* out, int64_t count, double lambda, Twister&);
void exponentials(double* out, int64_t count, double lambda, Twister&);
void cauchys(double* out, int64_t count, double median, double sigma, Twister&);
void geometrics(double* out, int64_t count, double p, Twister&);
void coins(bool* out, int64_t count, double p, Twister&);
// base + (draw modulo range), of 32-bit draws below a range of 2^28 and of 64-bit draws from there on.
void integers(int64_t* out, int64_t count, uint64_t range, int64_t base, Twister&);
void draws(uint32_t* out, int64_t count, Twister&);
void draws(uint64_t* out, int64_t count, Twister&);

// One sample.
double uniform(Twister&);
double normal(double mean, double std, Twister&);
double poisson(double rate, Twister&);
template <class T>
double gamma(T shape, Twister&);
template <class T>
T binomial(T trials, T probability, Twister&);

// Calls produce(buffer, n) and then store(buffer[i], i) for consecutive pieces of [0, count).
template <class Value, class Produce, class Store>
void in_pieces(int64_t count, Produce produce, Store store) {
  constexpr int64_t piece = 2048;
  alignas(64) Value buffer[piece];
  for (int64_t begin = 0; begin < count; begin += piece) {
    const int64_t n = std::min(piece, count - begin);
    produce(buffer, n);
    for (int64_t i = 0; i < n; ++i) store(buffer[i], begin + i);
  }
}

}  // namespace random_detail

// ---- continuous distributions -------------------------------------------------------------------------------------

// uniform_, rand: from `from` up to but without `to`.
template <class T>
void fill_uniform(T* out, int64_t count, double from, double to, Twister& generator) {
  using namespace random_detail;
  using Real = ComputeType<T>;
  std::lock_guard lock(generator.mutex());
  const Real low = static_cast<Real>(from), high = static_cast<Real>(to);
  if constexpr (!is_half<T>) {
    uniforms(out, count, low, high, generator);
  } else {
    const float excluded = static_cast<float>(T(high));
    in_pieces<float>(
        count, [&](float* piece, int64_t n) { uniforms(piece, n, low, high, generator); },
        [&](float value, int64_t i) {
          const T rounded(value);
          out[i] = static_cast<float>(rounded) == excluded ? T(low) : rounded;
        });
  }
}

// normal_ of an output that is not contiguous, or has fewer than 16 elements: Box-Muller in double, one by one.
template <class T>
void fill_normal_serial(T* out, int64_t count, double mean, double std, Twister& generator) {
  using namespace random_detail;
  std::lock_guard lock(generator.mutex());
  for (int64_t i = 0; i < count; ++i) out[i] = convert<T>(normal(mean, std, generator));
}

// normal_, randn of a contiguous output: Box-Muller on groups of 16 uniforms, where j and j + 8 make a pair. If the
// size is no multiple of 16, the last 16 elements come from a group of fresh uniforms.
template <class T>
void fill_normal(T* out, int64_t count, double mean, double std, Twister& generator) {
  using namespace random_detail;
  using Real = ComputeType<T>;
  if (count < 16) return fill_normal_serial(out, count, mean, std, generator);
  std::lock_guard lock(generator.mutex());
  const Real center = static_cast<Real>(mean), scale = static_cast<Real>(std);
  const int64_t grouped = count - count % 16, last = count - 16;
  if constexpr (!is_half<T>) {
    normal_groups(out, grouped, center, scale, generator);
    if (grouped != count) {
      // In float and double PyTorch has drawn a uniform for every element before it starts on the last group.
      constexpr int64_t words_each = sizeof(T) / sizeof(uint32_t);
      for (int64_t i = 0; i < (count - grouped) * words_each; ++i) generator.random();
      normal_groups(out + last, 16, center, scale, generator);
    }
  } else {
    const auto produce = [&](float* piece, int64_t n) { normal_groups(piece, n, center, scale, generator); };
    in_pieces<float>(grouped, produce, [&](float value, int64_t i) { out[i] = T(value); });
    if (grouped != count) in_pieces<float>(16, produce, [&](float value, int64_t i) { out[last + i] = T(value); });
  }
}

template <class T>
void fill_log_normal(T* out, int64_t count, double mean, double std, Twister& generator) {
  using namespace random_detail;
  std::lock_guard lock(generator.mutex());
  for (int64_t i = 0; i < count; ++i) out[i] = convert<T>(std::exp(normal(mean, std, generator)));
}

template <class T>
void fill_cauchy(T* out, int64_t count, double median, double sigma, Twister& generator) {
  using namespace random_detail;
  std::lock_guard lock(generator.mutex());
  in_pieces<double>(
      count, [&](double* piece, int64_t n) { cauchys(piece, n, median, sigma, generator); },
      [&](double value, int64_t i) { out[i] = convert<T>(value); });
}

template <class T>
void fill_exponential(T* out, int64_t count, double lambda, Twister& generator) {
  using namespace random_detail;
  std::lock_guard lock(generator.mutex());
  if constexpr (!is_half<T>)
    exponentials(out, count, lambda, generator);
  else
    in_pieces<float>(
        count, [&](float* piece, int64_t n) { exponentials(piece, n, lambda, generator); },
        [&](float value, int64_t i) { out[i] = T(value); });
}

// _standard_gamma: one sample for each shape parameter.
template <class T>
void fill_standard_gamma(T* out, const T* shape, int64_t count, Twister& generator) {
  using namespace random_detail;
  std::lock_guard lock(generator.mutex());
  for (int64_t i = 0; i < count; ++i)
    out[i] = std::isnan(shape[i]) ? shape[i]
                                  : std::max(std::numeric_limits<T>::min(), static_cast<T>(gamma(shape[i], generator)));
}

// ---- discrete distributions ---------------------------------------------------------------------------------------

// bernoulli_(p), and the mask of dropout with p the probability to keep.
template <class T>
void fill_bernoulli(T* out, int64_t count, double p, Twister& generator) {
  using namespace random_detail;
  std::lock_guard lock(generator.mutex());
  if constexpr (std::is_same_v<T, bool>) return coins(out, count, p, generator);
  in_pieces<bool>(
      count, [&](bool* piece, int64_t n) { coins(piece, n, p, generator); },
      [&](bool value, int64_t i) { out[i] = convert<T>(value); });
}

// bernoulli(p), bernoulli_(tensor): a probability for each element; those not in double cost one 32-bit draw each.
template <class T, class P>
void fill_bernoulli(T* out, const P* p, int64_t count, Twister& generator) {
  using namespace random_detail;
  using Real = ComputeType<P>;
  std::lock_guard lock(generator.mutex());
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<Real>(p[i]);
    check(value >= 0 && value <= 1, "bernoulli: expected p_in >= 0 && p_in <= 1, got ", value, " at element ", i);
  }
  in_pieces<Real>(
      count, [&](Real* piece, int64_t n) { uniforms(piece, n, Real(0), Real(1), generator); },
      [&](Real value, int64_t i) { out[i] = convert<T>(value < static_cast<Real>(p[i])); });
}

template <class T>
void fill_geometric(T* out, int64_t count, double p, Twister& generator) {
  using namespace random_detail;
  std::lock_guard lock(generator.mutex());
  in_pieces<double>(
      count, [&](double* piece, int64_t n) { geometrics(piece, n, p, generator); },
      [&](double value, int64_t i) { out[i] = convert<T>(value); });
}

template <class T>
void fill_poisson(T* out, const T* rate, int64_t count, Twister& generator) {
  using namespace random_detail;
  std::lock_guard lock(generator.mutex());
  for (int64_t i = 0; i < count; ++i) out[i] = convert<T>(poisson(static_cast<ComputeType<T>>(rate[i]), generator));
}

template <class T>
void fill_binomial(T* out, const T* trials, const T* probability, int64_t count, Twister& generator) {
  using namespace random_detail;
  std::lock_guard lock(generator.mutex());
  for (int64_t i = 0; i < count; ++i) out[i] = binomial(trials[i], probability[i], generator);
}

// ---- integers -----------------------------------------------------------------------------------------------------

// random_(from, to), randint: `range` values from `base` on.
template <class T>
void fill_integers(T* out, int64_t count, uint64_t range, int64_t base, Twister& generator) {
  using namespace random_detail;
  std::lock_guard lock(generator.mutex());
  if constexpr (std::is_same_v<T, int64_t>)
    integers(out, count, range, base, generator);
  else
    in_pieces<int64_t>(
        count, [&](int64_t* piece, int64_t n) { integers(piece, n, range, base, generator); },
        [&](int64_t value, int64_t i) { out[i] = convert<T>(value); });
}

// random_(-2**63, None): every 64-bit value.
template <class T>
void fill_all_integers(T* out, int64_t count, Twister& generator) {
  using namespace random_detail;
  std::lock_guard lock(generator.mutex());
  in_pieces<uint64_t>(
      count, [&](uint64_t* piece, int64_t n) { draws(piece, n, generator); },
      [&](uint64_t value, int64_t i) { out[i] = convert<T>(static_cast<int64_t>(value)); });
}

// random_(): the non-negative values of an integer type, or the integers from 0 to 2^digits of a float type.
template <class T>
void fill_nonnegative_integers(T* out, int64_t count, Twister& generator) {
  using namespace random_detail;
  using Draw = std::conditional_t<std::is_same_v<T, double> || std::is_same_v<T, int64_t>, uint64_t, uint32_t>;
  constexpr Draw values = (Draw(1) << digits<T>)+(std::is_integral_v<T> ? 0 : 1);
  std::lock_guard lock(generator.mutex());
  in_pieces<Draw>(
      count, [&](Draw* piece, int64_t n) { draws(piece, n, generator); },
      [&](Draw value, int64_t i) { out[i] = convert<T>(static_cast<int64_t>(value % values)); });
}

// The ends of random_(from, to) for a float type T: where T would round an end out of [from, to), the next integer
// inside that T holds.
template <class T>
int64_t inward_from(int64_t from) {
  using namespace random_detail;
  const auto rounded = static_cast<int64_t>(static_cast<ComputeType<T>>(convert<T>(from + 1)));
  return rounded >= from ? from : rounded + spacing<T>(from + 1);
}
template <class T>
int64_t inward_to(int64_t to) {
  using namespace random_detail;
  const auto rounded = static_cast<int64_t>(static_cast<ComputeType<T>>(convert<T>(to - 1)));
  return rounded < to ? to : rounded - spacing<T>(to - 1);
}

// ---- choices ------------------------------------------------------------------------------------------------------

// randperm: the numbers 0 ... count - 1 in random order. Fisher and Yates's shuffle: forwards, or, where the modulus of
// 32 bits would be noticeably uneven, inside-out with 64 bits.
template <class T>
void random_permutation(T* out, int64_t count, Twister& generator) {
  using namespace random_detail;
  std::lock_guard lock(generator.mutex());
  if (count < std::numeric_limits<uint32_t>::max() / 20) {
    for (int64_t i = 0; i < count; ++i) out[i] = convert<T>(i);
    in_pieces<uint32_t>(
        count - 1, [&](uint32_t* piece, int64_t n) { draws(piece, n, generator); },
        [&](uint32_t draw, int64_t i) { std::swap(out[i], out[i + draw % static_cast<uint32_t>(count - i)]); });
  } else {
    in_pieces<uint64_t>(
        count, [&](uint64_t* piece, int64_t n) { draws(piece, n, generator); },
        [&](uint64_t draw, int64_t i) {
          const uint64_t place = draw % static_cast<uint64_t>(i + 1);
          out[i] = out[place];
          out[place] = convert<T>(i);
        });
  }
}

// multinomial with replacement: for each row of `categories` weights, `samples` indices. Weights must be finite,
// not negative, and not all zero.
template <class P>
void multinomial_with_replacement(int64_t* out, const P* weights, int64_t rows, int64_t categories, int64_t samples,
                                  Twister& generator) {
  using namespace random_detail;
  using Real = ComputeType<P>;
  std::lock_guard lock(generator.mutex());
  std::vector<Real> cumulative(static_cast<std::size_t>(categories));
  for (int64_t row = 0; row < rows; ++row, weights += categories, out += samples) {
    Real sum = 0;
    for (int64_t i = 0; i < categories; ++i) {
      const auto weight = static_cast<Real>(weights[i]);
      check(!(weight < 0), "multinomial: invalid multinomial distribution (encountering probability entry < 0), got ",
            weight, " for category ", i);
      check(std::isfinite(weight), "multinomial: invalid multinomial distribution (encountering probability entry = ",
            "infinity or NaN), got ", weight, " for category ", i);
      cumulative[i] = sum += weight;
    }
    check(sum > 0, "multinomial: invalid multinomial distribution (sum of probabilities <= 0)");
    for (Real& value : cumulative) value /= sum;
    cumulative.back() = 1;
    for (int64_t i = 0; i < samples; ++i)
      out[i] = std::lower_bound(cumulative.begin(), cumulative.end(), uniform(generator)) - cumulative.begin();
  }
}

// multinomial without replacement, or of a single sample: in each row, the indices of the `samples` largest values of
// weight / wait, falling, with waits drawn from Exp(1); zero weights come last. The caller has checked the weights.
template <class P>
void multinomial_without_replacement(int64_t* out, const P* weights, const P* waits, int64_t rows, int64_t categories,
                                     int64_t samples) {
  using namespace random_detail;
  using Real = ComputeType<P>;
  using Key = std::pair<Real, int64_t>;
  std::vector<Key> keys(static_cast<std::size_t>(categories));
  const auto larger = [](const Key& a, const Key& b) { return a.first > b.first; };
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = row * categories;
    for (int64_t i = 0; i < categories; ++i) {
      const Real quotient = static_cast<Real>(weights[begin + i]) / static_cast<Real>(waits[begin + i]);
      keys[i] = {static_cast<Real>(convert<P>(quotient)), i};
    }
    // Which of several equal keys comes first is decided by PyTorch's choice of algorithms in topk.
    if (samples == 1) {
      std::swap(keys[0], *std::min_element(keys.begin(), keys.end(), larger));
    } else if (samples * 64 <= categories) {
      std::partial_sort(keys.begin(), keys.begin() + samples, keys.end(), larger);
    } else {
      std::nth_element(keys.begin(), keys.begin() + samples - 1, keys.end(), larger);
      std::sort(keys.begin(), keys.begin() + samples - 1, larger);
    }
    for (int64_t i = 0; i < samples; ++i) out[row * samples + i] = keys[i].second;
  }
}

}  // namespace cresset
