// Philox 4x32 with ten rounds (Salmon, Moraes, Dror and Shaw, 2011): the random words at any place of a stream, made
// from a seed and the place.
//
// Note [Words of an element]
// A stream is a row of words of 32 bits, four to a block. An operator that needs W words for an element takes count * W
// of them; element i, in the order of memory, has those from i * W on. So what is drawn depends on the seed, the offset
// and the element, never on the grid or the device. Operators that cannot say how many words an element needs give each
// element a stream of its own: the upper half of the counter is its number.
#pragma once
#include "types.cuh"

// Where a kernel starts; the same as Philox::Start in native/base/generator.h. In a captured graph `place` has the seed
// and the offset.
struct RandomStart {
  uint64_t seed, offset;
  const uint64_t* place;
};

class Philox {
 public:
  __device__ __forceinline__ explicit Philox(const RandomStart& start) {
    const uint64_t seed = start.place ? start.place[0] : start.seed;
    const uint64_t offset = start.place ? start.place[1] + start.offset : start.offset;
    first_ = offset / 4;
    key_[0] = static_cast<uint32_t>(seed);
    key_[1] = static_cast<uint32_t>(seed >> 32);
  }

  // The four words of a block, counted from the start.
  __device__ __forceinline__ void block(uint64_t number, uint32_t* words, uint64_t stream = 0) const {
    const uint64_t low = first_ + number;
    uint32_t c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32);
    uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
    uint32_t k0 = key_[0], k1 = key_[1];
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      const uint32_t high0 = __umulhi(0xd2511f53u, c0), low0 = 0xd2511f53u * c0;
      const uint32_t high1 = __umulhi(0xcd9e8d57u, c2), low1 = 0xcd9e8d57u * c2;
      c0 = high1 ^ c1 ^ k0;
      c1 = low1;
      c2 = high0 ^ c3 ^ k1;
      c3 = low0;
      k0 += 0x9e3779b9u;
      k1 += 0xbb67ae85u;
    }
    words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
  }

 private:
  uint32_t key_[2];
  uint64_t first_;
};

// ---- words as numbers: one word gives a float, two give a double

__device__ __forceinline__ uint64_t pair(const uint32_t* words) {
  return static_cast<uint64_t>(words[0]) << 32 | words[1];
}

template <class Real>
struct Unit;
template <>
struct Unit<float> {
  static constexpr int words = 1;
  // In [0, 1), in steps of 2^-24.
  static __device__ __forceinline__ float closed(const uint32_t* w) { return static_cast<float>(w[0] >> 8) * 0x1p-24f; }
  // In (0, 1].
  static __device__ __forceinline__ float open(const uint32_t* w) {
    return fmaf(static_cast<float>(w[0]), 0x1p-32f, 0x1p-33f);
  }
  // In (-1/2, 1/2).
  static __device__ __forceinline__ float centered(const uint32_t* w) {
    const float x = (static_cast<float>(static_cast<int32_t>(w[0] ^ 0x80000000u)) + 0.5f) * 0x1p-32f;
    return fminf(fmaxf(x, -0x1.fffffep-2f), 0x1.fffffep-2f);
  }
};
template <>
struct Unit<double> {
  static constexpr int words = 2;
  static __device__ __forceinline__ double closed(const uint32_t* w) {
    return static_cast<double>(pair(w) >> 11) * 0x1p-53;
  }
  static __device__ __forceinline__ double open(const uint32_t* w) {
    return (static_cast<double>(pair(w) >> 11) + 0.5) * 0x1p-53;
  }
  static __device__ __forceinline__ double centered(const uint32_t* w) { return open(w) - 0.5; }
};

// log(x) of a normal number x, which needs none of what CUDA's does for the others: x is m 2^k with m from 2/3 to 4/3.
__device__ __forceinline__ double log_of_normal(double x) { return log(x); }
__device__ __forceinline__ float log_of_normal(float x) {
  const int32_t bits = __builtin_bit_cast(int32_t, x);
  const int32_t exponent = (bits - 0x3f2aaaab) & static_cast<int32_t>(0xff800000u);
  const float m = __builtin_bit_cast(float, bits - exponent) - 1.0f;
  float p = -0.1294921878f;
  p = fmaf(p, m, 0.1400484894f);
  p = fmaf(p, m, -0.1216710552f);
  p = fmaf(p, m, 0.1400114219f);
  p = fmaf(p, m, -0.1668230749f);
  p = fmaf(p, m, 0.2001074867f);
  p = fmaf(p, m, -0.2499971754f);
  p = fmaf(p, m, 0.333332084f);
  p = fmaf(p, m, -0.5f);
  return fmaf(static_cast<float>(exponent), 0x1.62e43p-24f, fmaf(m * m, p, m));  // 2^-23 log(2)
}

// Two normal numbers from the words of two (Box and Muller).
template <class Real>
__device__ __forceinline__ void normal_pair(const uint32_t* words, Real& first, Real& second) {
  const Real radius = sqrt(Real(-2) * log_of_normal(Unit<Real>::open(words)));
  Real sine, cosine;
  sincospi(Real(2) * Unit<Real>::closed(words + Unit<Real>::words), &sine, &cosine);
  first = radius * cosine;
  second = radius * sine;
}

// Above zero: Exp(1).
template <class Real>
__device__ __forceinline__ Real exponential(const uint32_t* words) {
  constexpr Real kSmallest = sizeof(Real) == 8 ? Real(0x1p-53) : Real(0x1p-24);
  return fmax(-log_of_normal(Unit<Real>::open(words)), kSmallest);
}
