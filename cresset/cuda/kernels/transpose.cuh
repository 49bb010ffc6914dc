// Copies between two layouts of which each has another innermost dimension: tiles of 32 by 32 pass through shared memory, so that both sides are
// read and written along their rows. The same struct as in native/cuda/transpose.cpp.
#pragma once
#include "divider.cuh"

constexpr int kTile = 32, kRows = 8, kMostDims = 8;

struct Transposition {
  char* to;
  const char* from;
  int64_t columns, rows;                // the sizes of the dimension that is innermost in `to`, and of the one that is in `from`
  int64_t to_row, from_column;          // the stride of a row in `to`, of a column in `from`; the others are one
  Divider column_tiles, row_tiles;
  Divider sizes[kMostDims];             // of the other dimensions
  int64_t to_strides[kMostDims], from_strides[kMostDims];
};

// RANK other dimensions, WORD bytes an element.
extern "C" __global__ void __launch_bounds__(kTile * kRows) transpose(const Transposition t) {
  using Word = typename Words<WORD>::type;
  __shared__ Word tile[kTile][kTile + 1];
  uint32_t rest = blockIdx.x, quotient = divided(rest, t.column_tiles);
  const int64_t column = static_cast<int64_t>(rest - quotient * t.column_tiles.divisor) * kTile;
  rest = quotient;
  quotient = divided(rest, t.row_tiles);
  const int64_t row = static_cast<int64_t>(rest - quotient * t.row_tiles.divisor) * kTile;
  rest = quotient;
  int64_t to_offset = 0, from_offset = 0;
#pragma unroll
  for (int d = RANK - 1; d >= 0; --d) {
    uint32_t at = rest;
    if (d > 0) {
      rest = divided(rest, t.sizes[d]);
      at -= rest * t.sizes[d].divisor;
    }
    to_offset += static_cast<int64_t>(at) * t.to_strides[d];
    from_offset += static_cast<int64_t>(at) * t.from_strides[d];
  }
  const Word* from = reinterpret_cast<const Word*>(t.from) + from_offset;
  Word* to = reinterpret_cast<Word*>(t.to) + to_offset;
  const int x = static_cast<int>(threadIdx.x % kTile), y = static_cast<int>(threadIdx.x / kTile);
#pragma unroll
  for (int k = 0; k < kTile; k += kRows)
    if (row + x < t.rows && column + y + k < t.columns) tile[y + k][x] = from[(column + y + k) * t.from_column + row + x];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kTile; k += kRows)
    if (column + x < t.columns && row + y + k < t.rows) to[(row + y + k) * t.to_row + column + x] = tile[x][y + k];
}
