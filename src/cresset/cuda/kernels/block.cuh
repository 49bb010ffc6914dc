// What the threads of a warp and of a block do together: shuffles of any type, and reductions by fixed trees, so that a
// result has the same bits on every run.
#pragma once
#include "divider.cuh"
#include "math.cuh"

namespace cresset {

constexpr unsigned kWholeWarp = 0xffffffffu;

template <int N>
struct ShuffleWords {
  uint32_t words[N];
};

// The value of the lane whose number differs by the bits of `mask`, or lies `by` lanes before.
template <class A>
CRESSET_INLINE A shuffle_xor(const A& a, int mask) {
  using Parts = ShuffleWords<sizeof(A) / 4>;
  Parts parts = __builtin_bit_cast(Parts, a);
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(A) / 4); ++i)
    parts.words[i] = __shfl_xor_sync(kWholeWarp, parts.words[i], mask);
  return __builtin_bit_cast(A, parts);
}
template <class A>
CRESSET_INLINE A shuffle_up(const A& a, int by) {
  using Parts = ShuffleWords<sizeof(A) / 4>;
  Parts parts = __builtin_bit_cast(Parts, a);
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(A) / 4); ++i)
    parts.words[i] = __shfl_up_sync(kWholeWarp, parts.words[i], by);
  return __builtin_bit_cast(A, parts);
}

// Over groups of LANES neighboring lanes (a power of two up to 32); every lane gets the result.
template <int LANES, class T>
CRESSET_INLINE T sum_lanes(T x) {
#pragma unroll
  for (int offset = LANES / 2; offset > 0; offset /= 2) x = x + shuffle_xor(x, offset);
  return x;
}
// Nan wins.
template <class T>
CRESSET_INLINE T larger(T a, T b) {
  return b != b || b > a ? b : a;
}
template <int LANES, class T>
CRESSET_INLINE T largest_of_lanes(T x) {
#pragma unroll
  for (int offset = LANES / 2; offset > 0; offset /= 2) x = larger(x, shuffle_xor(x, offset));
  return x;
}

// exp for results that are stored as HALF, where the card's own exp2 is exact enough; and for all others.
template <bool HALF, class T>
CRESSET_INLINE T exp_for(T x) {
#ifndef CRESSET_EMULATED
  if constexpr (HALF && is_same<T, float>) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
    return y;
  }
#endif
  return math::exp(x);
}

// What sums of a type are merged in.
template <class T>
struct Wide {
  using type = T;
};
template <>
struct Wide<float> {
  using type = double;
};
template <>
struct Wide<complex64> {
  using type = complex128;
};
template <class T>
using wide = typename Wide<T>::type;

// ---- indices of strided memory ----

// Dimensions walked in row-major order: the place in memory of an element, counted in elements. The same struct as in
// native/cuda/walk.h.
struct Walk {
  static constexpr int kMostDims = 12;
  int32_t rank, unused;
  int64_t count;
  Divider sizes[kMostDims];
  int64_t strides[kMostDims];

  template <bool HUGE>
  CRESSET_INLINE int64_t offset(int64_t index) const {
    int64_t at = 0;
    if constexpr (HUGE) {
#pragma unroll 1
      for (int d = rank - 1; d > 0; --d) {
        const int64_t quotient = index / sizes[d].divisor;
        at += (index - quotient * sizes[d].divisor) * strides[d];
        index = quotient;
      }
      return at + index * strides[0];
    } else {
      uint32_t rest = static_cast<uint32_t>(index);
#pragma unroll 1
      for (int d = rank - 1; d > 0; --d) {
        const uint32_t quotient = sizes[d].quotient(rest);
        at += static_cast<int64_t>(rest - quotient * sizes[d].divisor) * strides[d];
        rest = quotient;
      }
      return at + static_cast<int64_t>(rest) * strides[0];
    }
  }
};

}  // namespace cresset
