// The product of matrices of bfloat16 for processors with tile registers (AMX): a tile holds 16 rows of 64 bytes, and
// one instruction multiplies 16 rows by 16 columns of 16 pairs.
#include <immintrin.h>

#pragma GCC target("avx512bf16,amx-tile,amx-bf16")
#define CRESSET_PAIRS
#include "ops/gemm_tiles.h"

namespace cresset {
namespace {

constexpr int64_t kSide = 16;               // of a tile, in rows and in pairs
constexpr int64_t kTile = kSide * kSide;    // pairs
constexpr int64_t kBlockLines = 2 * kSide;  // of a block of c, which is two by two tiles
constexpr int64_t kBlockPairs = 256;        // so many of a block's rows stay in the first level of the cache

struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// The tile whose row i, place j is from[i * row_step + j * step]; what is beyond rows and columns is zero.
void copy_tile(float* to, const float* from, int64_t row_step, int64_t step, int64_t rows, int64_t columns) {
  if (rows == kSide && columns == kSide && step == 1) {
    for (int64_t i = 0; i < kSide; ++i) std::memcpy(to + i * kSide, from + i * row_step, kSide * sizeof(float));
  } else if (rows == kSide && columns == kSide && row_step == 1) {
    Kernels<float>::Square<kSide>::copy(to, kSide, from, step);
  } else {
    std::memset(to, 0, kTile * sizeof(float));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) to[i * kSide + j] = from[i * row_step + j * step];
  }
}

// Up to kBlockLines rows of a, or columns of b: tile by tile along k, the two of a step side by side. A tile of a has a
// line in each row, one of b in each column.
template <bool kOfA>
void pack_block(const Factor<float>& f, float* to, int64_t first, int64_t count, int64_t k0, int64_t length) {
  for (int64_t p = 0; p < length; p += kSide)
    for (int64_t half = 0; half < kBlockLines; half += kSide, to += kTile) {
      if (half >= count) continue;
      const float* const from = f.data + (first + half) * f.line_step + (k0 + p) * f.k_step;
      const int64_t lines = std::min(kSide, count - half), pairs = std::min(kSide, length - p);
      kOfA ? copy_tile(to, from, f.line_step, f.k_step, lines, pairs)
           : copy_tile(to, from, f.k_step, f.line_step, pairs, lines);
    }
}

// A block of c from `steps` steps along k, on top of start if there is one. Without kLower or kRight, that half of it
// is not there.
template <bool kLower, bool kRight>
void multiply_block(const float* a, const float* b, int64_t steps, const float* start, int64_t start_row, float* c,
                    int64_t c_row) {
  constexpr int kPackedRow = kSide * sizeof(float);
  const int64_t start_bytes = start_row * static_cast<int64_t>(sizeof(float)),
                c_bytes = c_row * static_cast<int64_t>(sizeof(float));
  if (start) {
    _tile_loadd(0, start, start_bytes);
    if (kRight) _tile_loadd(1, start + kSide, start_bytes);
    if (kLower) _tile_loadd(2, start + kSide * start_row, start_bytes);
    if (kLower && kRight) _tile_loadd(3, start + kSide * start_row + kSide, start_bytes);
  } else {
    _tile_zero(0);
    if (kRight) _tile_zero(1);
    if (kLower) _tile_zero(2);
    if (kLower && kRight) _tile_zero(3);
  }
  for (; steps > 0; --steps, a += 2 * kTile, b += 2 * kTile) {
    _tile_loadd(4, a, kPackedRow);
    _tile_loadd(6, b, kPackedRow);
    _tile_dpbf16ps(0, 4, 6);
    if (kRight) {
      _tile_loadd(7, b + kTile, kPackedRow);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (kLower) {
      _tile_loadd(5, a + kTile, kPackedRow);
      _tile_dpbf16ps(2, 5, 6);
    }
    if (kLower && kRight) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, c_bytes);
  if (kRight) _tile_stored(1, c + kSide, c_bytes);
  if (kLower) _tile_stored(2, c + kSide * c_row, c_bytes);
  if (kLower && kRight) _tile_stored(3, c + kSide * c_row + kSide, c_bytes);
}

void by_matrix_tiles(const Product<float>& p) {
  const auto whole = [](int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; };
  const int64_t block_k = std::min(whole(p.k, kSide), kBlockPairs);
  const int64_t fitting = second_level_cache() * 3 / 4 / (block_k * static_cast<int64_t>(sizeof(float)));
  const int64_t strip = std::min(whole(p.n, kBlockLines), fitting / kBlockLines * kBlockLines);
  float* const packed_b = panel_scratch().take<float>((strip + kBlockLines) * block_k);
  float* const packed_a = packed_b + strip * block_k;
  alignas(64) float sums[kBlockLines * kBlockLines] = {};
  const TileShapes shapes;
  _tile_loadconfig(&shapes);
  for (int64_t jc = 0; jc < p.n; jc += strip)
    for (int64_t pc = 0; pc < p.k; pc += block_k) {
      const int64_t nc = std::min(strip, p.n - jc), kc = std::min(block_k, p.k - pc), steps = whole(kc, kSide) / kSide;
      const int64_t panel = steps * 2 * kTile;
      for (int64_t j = 0; j < nc; j += kBlockLines)
        pack_block<false>(p.b, packed_b + j / kBlockLines * panel, jc + j, std::min(kBlockLines, nc - j), pc, kc);
      const float beta = pc ? 1 : p.beta;
      // Whether sums begin with what is there: the same for all blocks, so that no element depends on where it lies.
      const bool on_top = p.alpha == 1 && (beta == 1 || !p.start);
      for (int64_t i = 0; i < p.m; i += kBlockLines) {
        const int64_t rows = std::min(kBlockLines, p.m - i);
        pack_block<true>(p.a, packed_a, i, rows, pc, kc);
        for (int64_t j = 0; j < nc; j += kBlockLines) {
          const int64_t columns = std::min(kBlockLines, nc - j);
          const float* const b = packed_b + j / kBlockLines * panel;
          float* const c = p.c + i * p.c_row + jc + j;
          const float* const start = pc ? c : p.start ? p.start + i * p.start_row + jc + j : nullptr;
          const int64_t start_row = pc ? p.c_row : p.start_row;
          const bool lower = rows > kSide, right = columns > kSide;
          const auto multiply = lower ? (right ? multiply_block<true, true> : multiply_block<true, false>)
                                      : (right ? multiply_block<false, true> : multiply_block<false, false>);
          if (!on_top) {
            multiply(packed_a, b, steps, nullptr, 0, sums, kBlockLines);
            for (int64_t y = 0; y < rows; ++y)
              for (int64_t x = 0; x < columns; ++x) {
                const float sum = p.alpha * sums[y * kBlockLines + x];
                c[y * p.c_row + x] = start ? sum + beta * start[y * start_row + x] : sum;
              }
          } else if (rows == kBlockLines && columns == kBlockLines) {
            multiply(packed_a, b, steps, start, start_row, c, p.c_row);
          } else {
            const auto row_bytes = static_cast<size_t>(columns) * sizeof(float);
            for (int64_t y = 0; start && y < rows; ++y)
              std::memcpy(sums + y * kBlockLines, start + y * start_row, row_bytes);
            multiply(packed_a, b, steps, start ? sums : nullptr, kBlockLines, sums, kBlockLines);
            for (int64_t y = 0; y < rows; ++y) std::memcpy(c + y * p.c_row, sums + y * kBlockLines, row_bytes);
          }
        }
      }
    }
  _tile_release();
}

}  // namespace

ProductKernels<float> product_kernels_of_matrix_tiles() {
  ProductKernels<float> kernels = product_kernels_of_pairs();
  kernels.tiles = by_matrix_tiles;
  return kernels;
}

}  // namespace cresset
