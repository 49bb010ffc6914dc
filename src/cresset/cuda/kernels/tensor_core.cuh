// Products of small matrices on tensor cores, and how their pieces come from memory.
//
// A warp multiplies 16 x 16 by 16 x 8 halves and adds to 16 x 8 floats. With g = lane / 4 and t = lane % 4 a lane holds
//   of the sum:     rows g and g + 8, columns 2t and 2t + 1;
//   of the first:   words of two neighbors: (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8);
//   of the second:  words of two neighbors along k: (2t, g), (2t + 8, g).
//
// Floats are multiplied 16 x 8 by 8 x 8 with the precision of TF32; a lane holds (g, t), (g + 8, t), (g, t + 4) and
// (g + 8, t + 4) of the first, (t, g) and (t + 4, g) of the second. See Note [Floats as sums of two].
#pragma once
#include "copies.cuh"

// Two floats as two halves in one word; the first in the low bits.
template <class T>
__device__ __forceinline__ uint32_t pack(float low, float high) {
#ifndef CRESSET_EMULATED
  uint32_t word;
  if constexpr (is_same<T, half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#else
  return T(low).bits | static_cast<uint32_t>(T(high).bits) << 16;
#endif
}

// And back.
template <class T>
__device__ __forceinline__ void unpack(uint32_t word, float& low, float& high) {
  if constexpr (is_same<T, half>) {
    low = half_to_float(static_cast<uint16_t>(word)), high = half_to_float(static_cast<uint16_t>(word >> 16));
  } else {
    low = __builtin_bit_cast(float, word << 16), high = __builtin_bit_cast(float, word & 0xffff0000u);
  }
}
// Sixteen bytes as eight floats.
template <class T>
__device__ __forceinline__ void unpack(const uint4& words, float (&to)[8]) {
  unpack<T>(words.x, to[0], to[1]);
  unpack<T>(words.y, to[2], to[3]);
  unpack<T>(words.z, to[4], to[5]);
  unpack<T>(words.w, to[6], to[7]);
}

__device__ __forceinline__ float power_of_two(float x) {
#ifndef CRESSET_EMULATED
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

// The inverse, of a positive number.
__device__ __forceinline__ float log_of_two(float x) {
#ifndef CRESSET_EMULATED
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return log2f(x);
#endif
}

// Note [Floats as sums of two]
// TF32 has the exponent of a float and ten bits of its mantissa; a product does not look at the other bits. A float is
// the sum of its nearest such number and of the rest, but for two of its 24 bits; the product of two sums, less that of
// the two rests, is the product of the floats to about 21 bits. The nearest one by adding half of a unit takes two
// instructions, where the conversion takes five; a nan may become a zero by it, and then the rest is a nan.
struct Split {
  uint32_t high, low;
};
__device__ __forceinline__ Split split(float x) {
  const uint32_t high = __builtin_bit_cast(uint32_t, x) + 0x1000u & ~0x1fffu;
  return {high, __builtin_bit_cast(uint32_t, x - __builtin_bit_cast(float, high))};
}

#ifndef CRESSET_EMULATED

__device__ __forceinline__ void multiply_add_tf32(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// sum += a b of floats, to nearly all their bits; the small products first.
__device__ __forceinline__ void multiply_add_floats(float (&sum)[4], const Split (&a)[4], const Split& b0,
                                                    const Split& b1) {
  const uint32_t high[4] = {a[0].high, a[1].high, a[2].high, a[3].high},
                 low[4] = {a[0].low, a[1].low, a[2].low, a[3].low};
  multiply_add_tf32(sum, low, b0.high, b1.high);
  multiply_add_tf32(sum, high, b0.low, b1.low);
  multiply_add_tf32(sum, high, b0.high, b1.high);
}

template <class T>
__device__ __forceinline__ void multiply_add(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (is_same<T, half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four matrices of 8 x 8 halves from shared memory: lane i gives the address of row i % 8 of matrix i / 8, and gets the
// elements (g, 2t) and (g, 2t + 1) of each; of their transposes with TRANSPOSED.
template <bool TRANSPOSED, class T>
__device__ __forceinline__ void load_matrices(uint32_t (&to)[4], const T* row) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (TRANSPOSED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

#else  // the same by words of the other lanes

template <class T>
__device__ float half_of(uint32_t word, int which) {
  T value;
  value.bits = static_cast<uint16_t>(which ? word >> 16 : word);
  return static_cast<float>(value);
}
template <class T>
__device__ void multiply_add(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  for (int q = 0; q < 4; ++q) {  // four elements of k: 2q, 2q + 1, 2q + 8, 2q + 9
    uint32_t rows[4], columns[2][2];
    for (int i = 0; i < 4; ++i) rows[i] = __shfl_sync(0xffffffffu, a[i], g * 4 + q);
    for (int c = 0; c < 2; ++c) {
      columns[c][0] = __shfl_sync(0xffffffffu, b0, (2 * t + c) * 4 + q);
      columns[c][1] = __shfl_sync(0xffffffffu, b1, (2 * t + c) * 4 + q);
    }
    for (int high = 0; high < 2; ++high)
      for (int which = 0; which < 2; ++which)
        for (int r = 0; r < 2; ++r)
          for (int c = 0; c < 2; ++c)
            sum[r * 2 + c] += half_of<T>(rows[high * 2 + r], which) * half_of<T>(columns[c][high], which);
  }
}
template <bool TRANSPOSED, class T>
__device__ void load_matrices(uint32_t (&to)[4], const T* row) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const auto address = reinterpret_cast<unsigned long long>(row);
  for (int i = 0; i < 4; ++i) {
    uint32_t parts[2];
    for (int c = 0; c < 2; ++c) {
      const int r = TRANSPOSED ? 2 * t + c : g;
      const T* from = reinterpret_cast<const T*>(__shfl_sync(0xffffffffu, address, i * 8 + r));
      parts[c] = from[TRANSPOSED ? g : 2 * t + c].bits;
    }
    to[i] = parts[0] | parts[1] << 16;
  }
}
#endif
