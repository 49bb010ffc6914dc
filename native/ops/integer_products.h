// The product of matrices of int8 with instructions that sum four products at once.
//
// Note [Sums of four]
// The instruction (AVX-512 VNNI) multiplies unsigned bytes with signed ones and adds four neighbouring products to an int32, which wraps around
// and never saturates. So a is packed as a + 128, four elements of k side by side, and sums begin with -128 times the sum of b's column.
#pragma once
#include <cstdint>

namespace cresset {

inline constexpr int64_t kIntegerColumns = 48;  // of a panel of b
inline constexpr int64_t kFour = 4;

// One factor: element (line, k) at line * line_step + k * k_step.
struct IntegerFactor {
  const int8_t* data;
  int64_t line_step, k_step;
};

// For processors with these instructions, on one thread. fours: k / 4, rounded up.
struct IntegerKernels {
  // A row of a, `fours` groups of four.
  void (*pack_row)(const IntegerFactor& a, int64_t row, int64_t k, uint8_t* to);
  // A panel of b, [four][column][4], and what the sums of its columns begin with; columns from count on are zero.
  void (*pack_panel)(const IntegerFactor& b, int64_t first, int64_t count, int64_t k, int8_t* to, int32_t* begin);
  // c[row][column] for packed rows and one panel.
  void (*tiles)(const uint8_t* a, int64_t rows, const int8_t* panel, const int32_t* begin, int64_t fours, int32_t* c, int64_t c_row, int64_t columns);
};
IntegerKernels integer_kernels_avx512();

}  // namespace cresset
