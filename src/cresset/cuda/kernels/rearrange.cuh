// Triangles of matrices: what lies outside becomes zero. The same words as in native/cuda/rearrange.cpp.
#pragma once
#include "divider.cuh"

#if BIG
using Index = uint64_t;
#else
using Index = uint32_t;
#endif

// VECTOR neighboring elements of WORD bytes a thread; columns is a multiple of VECTOR. Kept: columns up to row +
// diagonal, or with UPPER from there.
extern "C" __global__ void __launch_bounds__(256)
    triangle(char* to, const char* from, int64_t vectors, const Divider vectors_in_row, const Divider rows,
             int64_t diagonal) {
  after_earlier_work();
  using Word = typename Words<WORD>::type;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= vectors) return;
  const Index line = divided(static_cast<Index>(i), vectors_in_row), matrix = divided(line, rows);
  const int64_t row = static_cast<int64_t>(line - matrix * rows.divisor),
                column = (i - static_cast<int64_t>(line) * vectors_in_row.divisor) * VECTOR;
  // Of the elements of this vector those in [first, last) are kept.
  const int64_t cut = row + diagonal - column;
#if UPPER
  const int64_t first = cut, last = VECTOR;
#else
  const int64_t first = 0, last = cut + 1;
#endif
  Vector<Word, VECTOR> v;
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) v[k] = Word{};
  if (first < VECTOR && last > 0) {
    v = load_vector<VECTOR>(reinterpret_cast<const Word*>(from) + i * VECTOR);
#pragma unroll
    for (int k = 0; k < VECTOR; ++k)
      if (k < first || k >= last) v[k] = Word{};
  }
  store_vector(reinterpret_cast<Word*>(to) + i * VECTOR, v);
}
