// Elements added at the ends of up to three dimensions: MAKE, new elements of old ones or of a constant, in words of
// WORD bytes; and BACK, old elements as the sums of the new ones they became, in a fixed order. MODE: a PadMode.
#pragma once
#include "divider.cuh"
#include "padded_axis.h"

constexpr int kUnroll = 4;  // as in native/cuda/padding.cpp

// The same as in native/cuda/padding.cpp: memory is outer x three axes x inner.
struct Step {
  int64_t count;           // of what is made
  Divider made[3], inner;  // sizes of what is made
  int64_t read[3], read_inner;
  PaddedAxis<int32_t> axes[3];
};

#if BIG
using Index = uint64_t;
#else
using Index = uint32_t;
#endif

struct Where {
  int64_t outer, inner;
  int32_t at[3];
};
__device__ __forceinline__ Where find(const Step& s, int64_t i) {
  Where w;
  Index rest = static_cast<Index>(i), next = divided(rest, s.inner);
  w.inner = static_cast<int64_t>(rest - next * s.inner.divisor);
  rest = next;
#pragma unroll
  for (int d = 2; d >= 0; --d) {
    next = divided(rest, s.made[d]);
    w.at[d] = static_cast<int32_t>(rest - next * s.made[d].divisor);
    rest = next;
  }
  w.outer = static_cast<int64_t>(rest);
  return w;
}
__device__ __forceinline__ int64_t read_at(const Step& s, const Where& w, int32_t z, int32_t v, int32_t u) {
  return (((w.outer * s.read[0] + z) * s.read[1] + v) * s.read[2] + u) * s.read_inner + w.inner;
}

#ifdef MAKE
using Word = typename Words<WORD>::type;
struct alignas(16) Filler {
  char bytes[16];
};
extern "C" __global__ void __launch_bounds__(256) pad(const Word* x, Word* y, const Filler filler, const Step s) {
  after_earlier_work();
  const Word value = *reinterpret_cast<const Word*>(filler.bytes);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (256 * kUnroll) + threadIdx.x;
  Word words[kUnroll];
#pragma unroll
  for (int k = 0; k < kUnroll; ++k) {
    const int64_t i = first + k * 256;
    if (i >= s.count) continue;
    const Where w = find(s, i);
    const int32_t z = old_place(s.axes[0], MODE, w.at[0]), v = old_place(s.axes[1], MODE, w.at[1]),
                  u = old_place(s.axes[2], MODE, w.at[2]);
    words[k] = value;
    if (MODE != kPadConstant || (z >= 0 && v >= 0 && u >= 0)) words[k] = x[read_at(s, w, z, v, u)];
  }
#pragma unroll
  for (int k = 0; k < kUnroll; ++k)
    if (first + k * 256 < s.count) y[first + k * 256] = words[k];
}
#endif

#ifdef BACK
__device__ __forceinline__ bool is_alone(const PaddedAxis<int32_t>& a, int32_t at) {
  return at >= a.alone_begin && at < a.alone_end;
}
extern "C" __global__ void __launch_bounds__(256) pad(const T* x, T* y, const Step s) {
  after_earlier_work();
  using A = opmath<T>;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (256 * kUnroll) + threadIdx.x;
#pragma unroll
  for (int k = 0; k < kUnroll; ++k) {
    const int64_t i = first + k * 256;
    if (i >= s.count) continue;
    const Where w = find(s, i);
    const PaddedAxis<int32_t>&z = s.axes[0], &v = s.axes[1], &u = s.axes[2];
    if (is_alone(z, w.at[0]) && is_alone(v, w.at[1]) && is_alone(u, w.at[2])) {
      y[i] = x[read_at(s, w, w.at[0] + z.before, w.at[1] + v.before, w.at[2] + u.before)];
      continue;
    }
    A sum = A(0);
    for (int32_t a = new_place(z, MODE, w.at[0], 0); a < z.padded; a = new_place(z, MODE, w.at[0], a + 1))
      for (int32_t b = new_place(v, MODE, w.at[1], 0); b < v.padded; b = new_place(v, MODE, w.at[1], b + 1))
        for (int32_t c = new_place(u, MODE, w.at[2], 0); c < u.padded; c = new_place(u, MODE, w.at[2], c + 1))
          sum = sum + convert<A>(x[read_at(s, w, a, b, c)]);
    y[i] = convert<T>(sum);
  }
}
#endif
