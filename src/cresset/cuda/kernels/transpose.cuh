// Copies between two layouts of which each has another innermost dimension: tiles of 32 by 32 pass through shared
// memory, so that both sides are read and written along their rows. SINGLE, PAIRS: which kernel is wanted. The same
// struct as in native/cuda/transpose.cpp.
#pragma once
#include "divider.cuh"

constexpr int kTile = 32, kRows = 8, kMostDims = 8;

struct Transposition {
  char* to;
  const char* from;
  int64_t columns, rows;  // the sizes of the dimension that is innermost in `to`, and of the one that is in `from`
  int64_t to_row, from_column;  // the stride of a row in `to`, of a column in `from`; the others are one
  Divider column_tiles, row_tiles;
  Divider sizes[kMostDims];  // of the other dimensions
  int64_t to_strides[kMostDims], from_strides[kMostDims];
};

// The tile of this block: its first column and row, and where the matrix lies on both sides.
struct TileAt {
  int64_t column, row, to, from;
};
__device__ __forceinline__ TileAt tile_at(const Transposition& t, int tile) {
  TileAt at = {0, 0, 0, 0};
  uint32_t rest = blockIdx.x, quotient = divided(rest, t.column_tiles);
  at.column = static_cast<int64_t>(rest - quotient * t.column_tiles.divisor) * tile;
  rest = quotient;
  quotient = divided(rest, t.row_tiles);
  at.row = static_cast<int64_t>(rest - quotient * t.row_tiles.divisor) * tile;
  rest = quotient;
#pragma unroll
  for (int d = RANK - 1; d >= 0; --d) {
    uint32_t along = rest;
    if (d > 0) {
      rest = divided(rest, t.sizes[d]);
      along -= rest * t.sizes[d].divisor;
    }
    at.to += static_cast<int64_t>(along) * t.to_strides[d];
    at.from += static_cast<int64_t>(along) * t.from_strides[d];
  }
  return at;
}

#ifdef SINGLE
// RANK other dimensions, WORD bytes an element.
extern "C" __global__ void __launch_bounds__(kTile* kRows) transpose(const Transposition t) {
  after_earlier_work();
  using Word = typename Words<WORD>::type;
  __shared__ Word tile[kTile][kTile + 1];
  const TileAt at = tile_at(t, kTile);
  const Word* from = reinterpret_cast<const Word*>(t.from) + at.from;
  Word* to = reinterpret_cast<Word*>(t.to) + at.to;
  const int x = static_cast<int>(threadIdx.x % kTile), y = static_cast<int>(threadIdx.x / kTile);
#pragma unroll
  for (int k = 0; k < kTile; k += kRows)
    if (at.row + x < t.rows && at.column + y + k < t.columns)
      tile[y + k][x] = from[(at.column + y + k) * t.from_column + at.row + x];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kTile; k += kRows)
    if (at.column + x < t.columns && at.row + y + k < t.rows)
      to[(at.row + y + k) * t.to_row + at.column + x] = tile[x][y + k];
}
#endif

#ifdef PAIRS
// Elements of two bytes, two at a time, in tiles of 64 by 64: all sizes and strides but the innermost are even.
extern "C" __global__ void __launch_bounds__(kTile* kRows) transpose_pairs(const Transposition t) {
  after_earlier_work();
  constexpr int kWide = 2 * kTile;
  __shared__ uint32_t tile[kWide][kTile + 1];
  const TileAt at = tile_at(t, kWide);
  const uint16_t* from = reinterpret_cast<const uint16_t*>(t.from) + at.from;
  uint16_t* to = reinterpret_cast<uint16_t*>(t.to) + at.to;
  const int x = static_cast<int>(threadIdx.x % kTile), y = static_cast<int>(threadIdx.x / kTile);
#pragma unroll
  for (int k = 0; k < kWide; k += kRows)
    if (at.row + 2 * x < t.rows && at.column + y + k < t.columns)
      tile[y + k][x] = *reinterpret_cast<const uint32_t*>(from + (at.column + y + k) * t.from_column + at.row + 2 * x);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kWide; k += kRows) {
    if (at.column + 2 * x >= t.columns || at.row + y + k >= t.rows) continue;
    const int shift = (y + k) % 2 * 16;
    const uint32_t first = tile[2 * x][(y + k) / 2] >> shift & 0xffff,
                   second = tile[2 * x + 1][(y + k) / 2] >> shift & 0xffff;
    *reinterpret_cast<uint32_t*>(to + (at.row + y + k) * t.to_row + at.column + 2 * x) = first | second << 16;
  }
}
#endif
