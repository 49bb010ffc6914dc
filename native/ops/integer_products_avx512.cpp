// Products of int8 for processors with AVX-512 and its VNNI instructions: see Note [Sums of four] in integer_products.h.
#include "ops/integer_products.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace cresset {
namespace {

constexpr int kVectors = 3, kRows = 8, kLanes = 16;
static_assert(kVectors * kLanes == kIntegerColumns);

void pack_row(const IntegerFactor& a, int64_t row, int64_t k, uint8_t* to) {
  const int8_t* const from = a.data + row * a.line_step;
  if (a.k_step == 1)
    for (int64_t p = 0; p < k; ++p) to[p] = static_cast<uint8_t>(from[p]) ^ 0x80;
  else
    for (int64_t p = 0; p < k; ++p) to[p] = static_cast<uint8_t>(from[p * a.k_step]) ^ 0x80;
  for (int64_t p = k; p % kFour != 0; ++p) to[p] = 0;
}

void pack_panel(const IntegerFactor& b, int64_t first, int64_t count, int64_t k, int8_t* to, int32_t* begin) {
  uint32_t sums[kIntegerColumns] = {};  // they wrap around
  int8_t four[kFour][kIntegerColumns] = {};
  for (int64_t p = 0; p < k; p += kFour, to += kFour * kIntegerColumns) {
    for (int64_t q = 0; q < kFour; ++q) {
      const int8_t* const from = b.data + first * b.line_step + (p + q) * b.k_step;
      if (p + q >= k) std::memset(four[q], 0, sizeof four[q]);
      else if (b.line_step == 1) std::memcpy(four[q], from, static_cast<size_t>(count));
      else
        for (int64_t j = 0; j < count; ++j) four[q][j] = from[j * b.line_step];
    }
    for (int64_t j = 0; j < kIntegerColumns; ++j) {
      const auto byte = [&](int64_t q) { return static_cast<uint32_t>(static_cast<uint8_t>(four[q][j])) << (8 * q); };
      const uint32_t together = byte(0) | byte(1) | byte(2) | byte(3);
      std::memcpy(to + kFour * j, &together, sizeof together);
      sums[j] += static_cast<uint32_t>(four[0][j] + four[1][j] + four[2][j] + four[3][j]);
    }
  }
  for (int64_t j = 0; j < kIntegerColumns; ++j) begin[j] = static_cast<int32_t>(-128u * sums[j]);
}

template <int R>
[[gnu::target("avx512vnni")]] void tile(const uint8_t* a, const int8_t* panel, const int32_t* begin, int64_t fours, int32_t* c, int64_t c_row) {
  __m512i sums[R][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) sums[i][j] = _mm512_loadu_si512(begin + j * kLanes);
  const int64_t line = fours * kFour;
  for (int64_t p = 0; p < fours; ++p, a += kFour, panel += kFour * kIntegerColumns) {
    __m512i row[kVectors];
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) row[j] = _mm512_loadu_si512(panel + j * kLanes * kFour);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      int32_t four;
      std::memcpy(&four, a + i * line, sizeof four);
      const __m512i factor = _mm512_set1_epi32(four);
#pragma GCC unroll 3
      for (int j = 0; j < kVectors; ++j) sums[i][j] = _mm512_dpbusd_epi32(sums[i][j], factor, row[j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) _mm512_storeu_si512(c + i * c_row + j * kLanes, sums[i][j]);
}

template <int... R>
constexpr auto table_of(std::integer_sequence<int, R...>) {
  return std::array{tile<R + 1>...};
}

void tiles(const uint8_t* a, int64_t rows, const int8_t* panel, const int32_t* begin, int64_t fours, int32_t* c, int64_t c_row, int64_t columns) {
  static constexpr auto table = table_of(std::make_integer_sequence<int, kRows>());
  for (int64_t i = 0; i < rows; i += kRows) {
    const int64_t count = std::min<int64_t>(kRows, rows - i);
    const auto compute = table[static_cast<size_t>(count - 1)];
    const uint8_t* const lines = a + i * fours * kFour;
    if (columns == kIntegerColumns) {
      compute(lines, panel, begin, fours, c + i * c_row, c_row);
      continue;
    }
    int32_t whole[kRows * kIntegerColumns];
    compute(lines, panel, begin, fours, whole, kIntegerColumns);
    for (int64_t r = 0; r < count; ++r) std::copy_n(whole + r * kIntegerColumns, columns, c + (i + r) * c_row);
  }
}

}  // namespace

IntegerKernels integer_kernels_avx512() { return {pack_row, pack_panel, tiles}; }

}  // namespace cresset
