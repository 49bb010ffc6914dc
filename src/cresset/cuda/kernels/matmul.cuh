// A matrix times a vector, plus a bias: the speed is that of reading the matrix. A warp has ROWS rows of it; each lane
// asks for several vectors of 16 bytes of each before it uses the first. Sums have one order, whatever ROWS is.
//
// -D options: T, ROWS. Rows of the matrix start `step` elements apart, at whole vectors; a bias may be null.
// With HASH instead: a hash of words, and how many are not zero, to tell products with other bits.
#include "block.cuh"
#include "tensor_core.cuh"

#ifdef HASH

extern "C" __global__ void __launch_bounds__(256)
    hash_words(const uint4* words, int64_t count, unsigned long long* sums) {
  after_earlier_work();
  unsigned long long hash = 0, filled = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * 256) {
    const uint4 v = words[i];
    unsigned long long h = static_cast<unsigned long long>(i) * 0x9e3779b97f4a7c15ull;
    const uint32_t parts[] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      h = (h ^ parts[k]) * 0xff51afd7ed558ccdull;
      h ^= h >> 32;
    }
    hash += h;
    filled += (v.x | v.y | v.z | v.w) != 0;
  }
  hash = sum_lanes<32>(hash), filled = sum_lanes<32>(filled);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(sums, hash);
    atomicAdd(sums + 1, filled);
  }
}

#else

using C = opmath<T>;
constexpr int kWarps = 4, kVector = 16 / sizeof(T), kAcross = 32 * kVector, kUnroll = 4;

// The matrix is read once: what else lies in the cache shall stay there.
CRESSET_INLINE uint4 load_once(const T* from) {
#ifndef CRESSET_EMULATED
  uint4 words;
  asm("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
      : "l"(from));
  return words;
#else
  return *reinterpret_cast<const uint4*>(from);
#endif
}
template <class E>
CRESSET_INLINE void add_products(C& sum, const uint4& a, const uint4& b) {
  C x[16 / sizeof(E)], y[16 / sizeof(E)];
  if constexpr (is_half<E>) {
    unpack<E>(a, x);
    unpack<E>(b, y);
  } else {
    const auto first = __builtin_bit_cast(Vector<C, 4>, a), second = __builtin_bit_cast(Vector<C, 4>, b);
#pragma unroll
    for (int i = 0; i < kVector; ++i) x[i] = first[i], y[i] = second[i];
  }
#pragma unroll
  for (int i = 0; i < kVector; ++i) sum += x[i] * y[i];
}

extern "C" __global__ void __launch_bounds__(32 * kWarps)
    multiply_vector(const T* __restrict__ matrix, const T* __restrict__ vector, const T* bias, T* out, int32_t rows,
                    int32_t k, int64_t step) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = (static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32) * ROWS;
  const T* from[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) from[r] = matrix + (row + r < rows ? row + r : row) * step;
  if (row < rows && lane == 0)
#pragma unroll
    for (int r = 0; r < ROWS; ++r) prefetch(from[r], min(k, kAcross * kUnroll) * static_cast<int>(sizeof(T)));
  after_earlier_work();
  if (row >= rows) return;
  C sums[ROWS] = {};
  for (int at = lane * kVector; at < k; at += kAcross * kUnroll) {
    uint4 a[kUnroll][ROWS], b[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        a[u][r] = at + u * kAcross < k ? load_once(from[r] + at + u * kAcross) : uint4{0, 0, 0, 0};
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      b[u] = at + u * kAcross < k ? *reinterpret_cast<const uint4*>(vector + at + u * kAcross) : uint4{0, 0, 0, 0};
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
#pragma unroll
      for (int r = 0; r < ROWS; ++r) add_products<T>(sums[r], a[u][r], b[u]);
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const C sum = sum_lanes<32>(sums[r]);
    if (lane == 0 && row + r < rows) out[row + r] = convert<T>(bias ? sum + convert<C>(bias[row + r]) : sum);
  }
}

#endif
