// The loops of random_kernels.h: from the twister's words to samples. What PyTorch's build fuses into a multiply-add is
// written as fma here, so that the samples have PyTorch's bits.
#include "ops/random_kernels.h"

#include <bit>
#include <cstring>
#include <memory>
#include <numbers>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "base/random_samples.h"

namespace cresset::random_detail {
namespace {

// ---- words to uniforms --------------------------------------------------------------------------------------------

// 24 bits of a word, as a float in [0, 1).
[[gnu::always_inline]] inline float unit_float(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(Twister::temper(word) & 0xffffffu)) * 0x1p-24f;
}

// An integer below 2^32 as a double, written so that it vectorizes without 64-bit conversions.
[[gnu::always_inline]] inline double exact_double(uint32_t value) {
  return std::bit_cast<double>(0x4330000000000000u | uint64_t(value)) - 0x1p52;
}

// Two tempered words as 64 bits; the upper half was drawn first.
static_assert(std::endian::native == std::endian::little);
[[gnu::always_inline]] inline uint64_t pair_of_words(const uint32_t* words, int64_t i) {
  uint64_t pair;
  std::memcpy(&pair, words + 2 * i, sizeof pair);
  return pair << 32 | pair >> 32;
}
constexpr uint64_t unit_bits = (uint64_t(1) << 53) - 1;

// The lower 53 bits of 64, as a double in [0, 1).
[[gnu::always_inline]] inline double unit_double(uint64_t pair) {
  const double high = exact_double(static_cast<uint32_t>(pair >> 32) & 0x1fffffu);
  return (high * 0x1p32 + exact_double(static_cast<uint32_t>(pair))) * 0x1p-53;
}

[[gnu::always_inline]] inline void temper_all(uint32_t* words, int64_t count) {
  for (int64_t i = 0; i < count; ++i) words[i] = Twister::temper(words[i]);
}

struct UnitFloats {
  template <class Fma>
  CRESSET_INLINE void run(const uint32_t* __restrict words, float* __restrict out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) out[i] = unit_float(words[i]);
  }
};

struct UniformFloats {
  template <class Fma>
  CRESSET_INLINE void run(const uint32_t* __restrict words, float* __restrict out, int64_t count, float from,
                          float to) {
    const float width = to - from;
    for (int64_t i = 0; i < count; ++i) {
      const float value = Fma::fma(unit_float(words[i]), width, from);
      out[i] = value == to ? from : value;
    }
  }
};

struct UnitDoubles {
  template <class Fma>
  CRESSET_INLINE void run(uint32_t* __restrict words, double* __restrict out, int64_t count) {
    temper_all(words, 2 * count);
    for (int64_t i = 0; i < count; ++i) out[i] = unit_double(pair_of_words(words, i));
  }
};

// From [0, 1) to [from, to).
struct ScaleDoubles {
  template <class Fma>
  CRESSET_INLINE void run(double* values, int64_t count, double from, double to) {
    const double width = to - from;
    for (int64_t i = 0; i < count; ++i) {
      const double value = Fma::fma(values[i], width, from);
      values[i] = value == to ? from : value;
    }
  }
};

struct Draws32 {
  template <class Fma>
  CRESSET_INLINE void run(const uint32_t* __restrict words, uint32_t* __restrict out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) out[i] = Twister::temper(words[i]);
  }
};

struct Draws64 {
  template <class Fma>
  CRESSET_INLINE void run(uint32_t* __restrict words, uint64_t* __restrict out, int64_t count) {
    temper_all(words, 2 * count);
    for (int64_t i = 0; i < count; ++i) out[i] = pair_of_words(words, i);
  }
};

// Whether the uniform double of a pair is below p: the same as its 53 bits below `limit` = p 2^53, rounded up.
struct Coins {
  template <class Fma>
  CRESSET_INLINE void run(uint32_t* __restrict words, bool* __restrict out, int64_t count, int64_t limit) {
    temper_all(words, 2 * count);
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(pair_of_words(words, i) & unit_bits) < limit;
  }
};

// ---- uniforms to samples ------------------------------------------------------------------------------------------

// Logarithm of x in [2^-24, 1], and sine and cosine of an angle in [0, 2 pi]: the polynomials of the Cephes library for
// single precision, which PyTorch uses for normal samples too.
template <class Fma>
[[gnu::always_inline]] inline float log_of_unit(float x) {
  const auto bits = std::bit_cast<int32_t>(x);
  const float mantissa = std::bit_cast<float>((bits & 0x007fffff) | 0x3f000000);  // in [0.5, 1)
  const bool low = mantissa < 0.707106781186547524f;
  const float exponent = static_cast<float>((bits >> 23) - 126 - (low ? 1 : 0));
  const float m = (mantissa - 1.0f) + (low ? mantissa : 0.0f);
  const float square = m * m;
  float p = 7.0376836292e-2f;
  p = Fma::fma(p, m, -1.1514610310e-1f);
  p = Fma::fma(p, m, 1.1676998740e-1f);
  p = Fma::fma(p, m, -1.2420140846e-1f);
  p = Fma::fma(p, m, 1.4249322787e-1f);
  p = Fma::fma(p, m, -1.6668057665e-1f);
  p = Fma::fma(p, m, 2.0000714765e-1f);
  p = Fma::fma(p, m, -2.4999993993e-1f);
  p = Fma::fma(p, m, 3.3333331174e-1f);
  p = Fma::fma(p * m, square, exponent * -2.12194440e-4f);
  p = Fma::fma(square, -0.5f, p);
  return Fma::fma(exponent, 0.693359375f, m + p);
}

template <class Fma>
[[gnu::always_inline]] inline void sine_and_cosine(float angle, float& sine, float& cosine) {
  // The octant, made even: angle = octant * pi/4 + rest, with |rest| <= pi/4.
  const int32_t octant = (static_cast<int32_t>(angle * 1.27323954473516f) + 1) & ~1;
  const float steps = static_cast<float>(octant);
  float rest = Fma::fma(steps, -0.78515625f, angle);
  rest = Fma::fma(steps, -2.4187564849853515625e-4f, rest);
  rest = Fma::fma(steps, -3.77489497744594108e-8f, rest);
  const float square = rest * rest;
  float c = Fma::fma(2.443315711809948e-5f, square, -1.388731625493765e-3f);
  c = Fma::fma(c, square, 4.166664568298827e-2f);
  c = Fma::fma(c * square, square, -(square * 0.5f)) + 1.0f;
  float s = Fma::fma(-1.9515295891e-4f, square, 8.3321608736e-3f);
  s = Fma::fma(s, square, -1.6666654611e-1f);
  s = Fma::fma(s * square, rest, rest);
  const bool swap = (octant & 2) != 0;
  const uint32_t sine_sign = static_cast<uint32_t>(octant & 4) << 29;
  const uint32_t cosine_sign = static_cast<uint32_t>((octant + 2) & 4) << 29;
  sine = std::bit_cast<float>(std::bit_cast<uint32_t>(swap ? c : s) ^ sine_sign);
  cosine = std::bit_cast<float>(std::bit_cast<uint32_t>(swap ? s : c) ^ cosine_sign);
}

struct NormalFloats {
  static constexpr int64_t group = 16, half = 8, tile = 8;

  // `count` is a multiple of 16. Tiles of eight groups: the pairs of a group are eight apart, and the loop over pairs
  // should be longer than any vector register.
  template <class Fma>
  CRESSET_INLINE void run(const uint32_t* words, float* out, int64_t count, float mean, float std) {
    for (int64_t begin = 0; begin < count; begin += tile * group) {
      const int64_t groups = std::min(tile, (count - begin) / group);
      alignas(64) uint32_t first[tile * half], second[tile * half];
      alignas(64) float cosines[tile * half], sines[tile * half];
      if (groups < tile) {
        std::fill_n(first, tile * half, 0u);
        std::fill_n(second, tile * half, 0u);
      }
      for (int64_t g = 0; g < groups; ++g) {
        std::copy_n(words + begin + g * group, half, first + g * half);
        std::copy_n(words + begin + g * group + half, half, second + g * half);
      }
      for (int64_t i = 0; i < tile * half; ++i) {
        const float radius = __builtin_sqrtf(-2.0f * log_of_unit<Fma>(1.0f - unit_float(first[i])));
        float sine, cosine;
        sine_and_cosine<Fma>(static_cast<float>(2 * std::numbers::pi) * unit_float(second[i]), sine, cosine);
        cosines[i] = Fma::fma(radius * cosine, std, mean);
        sines[i] = Fma::fma(radius * sine, std, mean);
      }
      for (int64_t g = 0; g < groups; ++g) {
        std::copy_n(cosines + g * half, half, out + begin + g * group);
        std::copy_n(sines + g * half, half, out + begin + g * group + half);
      }
    }
  }
};

// -log(1 - u) / lambda, in double and then rounded to float. 1 - u is exact, and the series is good to 1e-15.
struct ExponentialFloats {
  template <class Fma>
  CRESSET_INLINE void run(uint32_t* __restrict words, float* __restrict out, int64_t count, double lambda) {
    temper_all(words, 2 * count);
    const double scale = -1.0 / lambda;
    for (int64_t i = 0; i < count; ++i) {
      const double x = 1.0 - unit_double(pair_of_words(words, i));
      // x = 2^exponent * m with m in [1/sqrt 2, sqrt 2), and log m = 2 artanh((m - 1) / (m + 1)).
      const auto bits = std::bit_cast<uint64_t>(x);
      const uint64_t above = bits - 0x3fe6a09e667f3bcdu + (uint64_t(1023) << 52);
      const double exponent = exact_double(static_cast<uint32_t>(above >> 52)) - 1023.0;
      const double m = std::bit_cast<double>((above & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
      const double t = (m - 1.0) / (m + 1.0), square = t * t;
      double p = 1.0 / 21;
      p = p * square + 1.0 / 19;
      p = p * square + 1.0 / 17;
      p = p * square + 1.0 / 15;
      p = p * square + 1.0 / 13;
      p = p * square + 1.0 / 11;
      p = p * square + 1.0 / 9;
      p = p * square + 1.0 / 7;
      p = p * square + 1.0 / 5;
      p = p * square + 1.0 / 3;
      const double logarithm = exponent * std::numbers::ln2 + 2.0 * (t + t * square * p);
      out[i] = static_cast<float>(scale * logarithm);
    }
  }
};

// base + word modulo range, for a range below 2^28, in exact double arithmetic: the rounded quotient leaves a remainder
// between -range / 2 and range / 2.
struct SmallIntegers {
  template <class Fma>
  CRESSET_INLINE void run(const uint32_t* __restrict words, int64_t* __restrict out, int64_t count, uint32_t range,
                          int64_t base) {
    const double divisor = range, inverse = 1.0 / divisor;
    for (int64_t i = 0; i < count; ++i) {
      const double value = exact_double(Twister::temper(words[i]));
      const double quotient = (value * inverse + 0x1p52) - 0x1p52;
      const double remainder = value - quotient * divisor;
      const double positive = remainder < 0 ? remainder + divisor : remainder;
      out[i] = base + static_cast<int64_t>(std::bit_cast<uint64_t>(positive + 0x1p52) & 0xffffffffu);
    }
  }
};

// ---- pieces -------------------------------------------------------------------------------------------------------

// Draws the words for `count` results, `words_each` for one, piece by piece, and calls transform(words, begin, n) on
// each piece; it may overwrite the words. Only the draws are serial: where there are threads, they share the transform.
template <class Transform>
void transform_words(int64_t count, int64_t words_each, Twister& generator, Transform transform) {
  constexpr int64_t piece = 2048, share = 64 * piece;
  const int64_t threads = thread_count();
  if (threads > 1 && count >= 2 * share && !in_parallel_region()) {
    const int64_t batch = threads * share;
    const std::unique_ptr<uint32_t[]> words(new uint32_t[batch * words_each]);
    for (int64_t begin = 0; begin < count; begin += batch) {
      const int64_t n = std::min(batch, count - begin);
      generator.draw_untempered(words.get(), n * words_each);
      parallel_for((n + piece - 1) / piece, 1, [&](int64_t first, int64_t last) {
        for (int64_t at = first * piece; at < std::min(last * piece, n); at += piece)
          transform(words.get() + at * words_each, begin + at, std::min(piece, n - at));
      });
    }
    return;
  }
  alignas(64) uint32_t words[2 * piece];
  for (int64_t begin = 0; begin < count; begin += piece) {
    const int64_t n = std::min(piece, count - begin);
    generator.draw_untempered(words, n * words_each);
    transform(words, begin, n);
  }
}

}  // namespace

void uniforms(float* out, int64_t count, float from, float to, Twister& generator) {
  transform_words(count, 1, generator, [=](uint32_t* words, int64_t begin, int64_t n) {
    if (from == 0 && to == 1)
      run_vectorized<UnitFloats>(words, out + begin, n);
    else
      run_vectorized<UniformFloats>(words, out + begin, n, from, to);
  });
}

void uniforms(double* out, int64_t count, double from, double to, Twister& generator) {
  transform_words(count, 2, generator, [=](uint32_t* words, int64_t begin, int64_t n) {
    run_vectorized<UnitDoubles>(words, out + begin, n);
    if (from != 0 || to != 1) run_vectorized<ScaleDoubles>(out + begin, n, from, to);
  });
}

void normal_groups(float* out, int64_t count, float mean, float std, Twister& generator) {
  transform_words(count, 1, generator, [=](uint32_t* words, int64_t begin, int64_t n) {
    run_vectorized<NormalFloats>(words, out + begin, n, mean, std);
  });
}

void normal_groups(double* out, int64_t count, double mean, double std, Twister& generator) {
  transform_words(count, 2, generator, [=](uint32_t* words, int64_t begin, int64_t n) {
    run_vectorized<UnitDoubles>(words, out + begin, n);
    for (double* group = out + begin; group != out + begin + n; group += 16) {
      for (int j = 0; j < 8; ++j) {
        const double radius = std::sqrt(-2 * std::log(1 - group[j]));
        const double angle = 2 * std::numbers::pi * group[j + 8];
        group[j] = std::fma(radius * std::cos(angle), std, mean);
        group[j + 8] = std::fma(radius * std::sin(angle), std, mean);
      }
    }
  });
}

void exponentials(float* out, int64_t count, double lambda, Twister& generator) {
  transform_words(count, 2, generator, [=](uint32_t* words, int64_t begin, int64_t n) {
    run_vectorized<ExponentialFloats>(words, out + begin, n, lambda);
  });
}

void exponentials(double* out, int64_t count, double lambda, Twister& generator) {
  transform_words(count, 2, generator, [=](uint32_t* words, int64_t begin, int64_t n) {
    double* piece = out + begin;
    run_vectorized<UnitDoubles>(words, piece, n);
    for (int64_t i = 0; i < n; ++i) piece[i] = -1.0 / lambda * std::log1p(-piece[i]);
  });
}

void cauchys(double* out, int64_t count, double median, double sigma, Twister& generator) {
  transform_words(count, 2, generator, [=](uint32_t* words, int64_t begin, int64_t n) {
    double* piece = out + begin;
    run_vectorized<UnitDoubles>(words, piece, n);
    for (int64_t i = 0; i < n; ++i) piece[i] = std::fma(sigma, std::tan(std::numbers::pi * (piece[i] - 0.5)), median);
  });
}

void geometrics(double* out, int64_t count, double p, Twister& generator) {
  const double log_failure = std::log1p(-p);
  transform_words(count, 2, generator, [=](uint32_t* words, int64_t begin, int64_t n) {
    double* piece = out + begin;
    run_vectorized<UnitDoubles>(words, piece, n);
    for (int64_t i = 0; i < n; ++i) piece[i] = std::ceil(std::log(piece[i]) / log_failure);
  });
}

void coins(bool* out, int64_t count, double p, Twister& generator) {
  const auto limit = static_cast<int64_t>(std::ceil(p * 0x1p53));
  transform_words(count, 2, generator, [=](uint32_t* words, int64_t begin, int64_t n) {
    run_vectorized<Coins>(words, out + begin, n, limit);
  });
}

void integers(int64_t* out, int64_t count, uint64_t range, int64_t base, Twister& generator) {
  if (range < uint64_t(1) << 28) {
    transform_words(count, 1, generator, [=](uint32_t* words, int64_t begin, int64_t n) {
      run_vectorized<SmallIntegers>(words, out + begin, n, static_cast<uint32_t>(range), base);
    });
  } else {
    transform_words(count, 2, generator, [=](uint32_t* words, int64_t begin, int64_t n) {
      auto* piece = reinterpret_cast<uint64_t*>(out + begin);
      run_vectorized<Draws64>(words, piece, n);
      for (int64_t i = 0; i < n; ++i) piece[i] = piece[i] % range + static_cast<uint64_t>(base);
    });
  }
}

void draws(uint32_t* out, int64_t count, Twister& generator) {
  transform_words(count, 1, generator,
                  [=](uint32_t* words, int64_t begin, int64_t n) { run_vectorized<Draws32>(words, out + begin, n); });
}

void draws(uint64_t* out, int64_t count, Twister& generator) {
  transform_words(count, 2, generator,
                  [=](uint32_t* words, int64_t begin, int64_t n) { run_vectorized<Draws64>(words, out + begin, n); });
}

// ---- one by one ---------------------------------------------------------------------------------------------------

double uniform(Twister& generator) { return static_cast<double>(generator.random64() & unit_bits) * 0x1p-53; }

double normal(double mean, double std, Twister& generator) {
  double sample;
  if (generator.next_double_normal) {
    sample = *generator.next_double_normal;
    generator.next_double_normal.reset();
  } else {
    const double u1 = uniform(generator), u2 = uniform(generator);
    const double radius = std::sqrt(-2.0 * std::log1p(-u2));
    const double angle = 2.0 * std::numbers::pi * u1;
    generator.next_double_normal = radius * std::sin(angle);
    sample = radius * std::cos(angle);
  }
  return std::fma(sample, std, mean);
}

namespace {

// The numbers that samples are made of.
struct Source {
  Twister& generator;
  double uniform() { return random_detail::uniform(generator); }
  double normal() { return random_detail::normal(0, 1, generator); }
};

}  // namespace

double poisson(double rate, Twister& generator) {
  check(rate >= 0, "poisson: invalid Poisson rate, expected rate to be non-negative, got ", rate);
  Source source{generator};
  return samples::poisson(rate, source);
}

template <class T>
double gamma(T shape, Twister& generator) {
  Source source{generator};
  return samples::gamma(shape, source);
}
template double gamma(float, Twister&);
template double gamma(double, Twister&);

template <class T>
T binomial(T trials, T probability, Twister& generator) {
  Source source{generator};
  return samples::binomial(trials, probability, source);
}
template float binomial(float, float, Twister&);
template double binomial(double, double, Twister&);

}  // namespace cresset::random_detail
