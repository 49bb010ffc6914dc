// Transposing a matrix in tiles of whole cache lines on both sides.
#pragma once
#include <algorithm>
#include <cstdint>

namespace cresset {

// Four rows of four: the transpose of a 4x4 block of 32-bit elements in registers.
template <class T>
void transpose_quads(T* to, int64_t to_row, const T* from, int64_t from_row) {
  using Quad = uint32_t __attribute__((vector_size(16), aligned(4), may_alias));
  const auto load = [&](int64_t k) { return *reinterpret_cast<const Quad*>(from + k * from_row); };
  const Quad a = load(0), b = load(1), c = load(2), d = load(3);
  const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const auto store = [&](int64_t k, Quad v) { *reinterpret_cast<Quad*>(to + k * to_row) = v; };
  store(0, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  store(1, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  store(2, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  store(3, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

// to[column * to_row + row] = from[row * from_row + column]. Stripes of a few cache lines in a row of `from` keep what
// is written in the cache.
template <class T>
void transpose_matrix(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 64 / sizeof(T), kStripe = 16 * kTile;
  for (int64_t stripe = 0; stripe < columns; stripe += kStripe)
    for (int64_t r = 0; r < rows; r += kTile)
      for (int64_t c = stripe; c < std::min(stripe + kStripe, columns); c += kTile) {
        const int64_t height = std::min(kTile, rows - r), width = std::min(kTile, columns - c);
        T* out = to + c * to_row + r;
        const T* in = from + r * from_row + c;
        int64_t i = 0;
        if constexpr (sizeof(T) == 4) {
          for (; i + 4 <= height; i += 4) {
            int64_t j = 0;
            for (; j + 4 <= width; j += 4)
              transpose_quads(out + j * to_row + i, to_row, in + i * from_row + j, from_row);
            for (; j < width; ++j)
              for (int64_t k = i; k < i + 4; ++k) out[j * to_row + k] = in[k * from_row + j];
          }
        }
        for (; i < height; ++i)
          for (int64_t j = 0; j < width; ++j) out[j * to_row + i] = in[i * from_row + j];
      }
}

}  // namespace cresset
