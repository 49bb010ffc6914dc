// What is computed of Fourier transforms for each instruction set: transforms of a block of lines side by side, and how
// lines get into blocks.
//
// Note [Blocks of lines]
// A block holds as many lines as a vector has lanes: element i of all lines is a vector of real parts and one of
// imaginary parts, x[i][2][lanes]. Every step of a transform is then arithmetic with whole vectors, whatever the
// length. Lines that follow one another in memory get into a block by transposing, and since the two parts of a number
// alternate there too, it is the same for complex numbers, for real ones that are taken for pairs, and for both ways. A
// transform backward is the one forward with the two parts exchanged (`swapped`).
#pragma once
#include <cstdint>

namespace cresset {

constexpr int kLargestRadix = 31;

// in(k, q, i) goes to out(j, k, i) = sum over q of in(k, q, i) w^(jq), times the root of unity for (i, j), where w is
// the radix-th one.
template <class R>
struct FourierPass {
  int64_t radix, done, inner;  // the factors: k < done, q and j < radix, i < inner
  const R* roots;              // [inner][radix - 1], complex
  const R* circle;             // the radix-th roots of unity: cosines and sines
  // Between passes the parts for each j have a gap of a number after them: at distances of powers of two they would
  // displace one another from the cache. in(k + 1, 0, 0) does not follow in(k, radix - 1, inner - 1) at multiples of
  // `joined`.
  int64_t joined, gap_in, gap_out;
};

template <class R>
struct FourierKernels {
  int64_t lanes;
  // From x to y and back; returns where the result is.
  R* (*transform)(const FourierPass<R>* passes, int64_t count, R* x, R* y, bool swapped);

  // The first `count` reals of each line; lines are `row` apart. Only `valid` lines are there.
  void (*load_rows)(R* x, const R* from, int64_t row, int64_t valid, int64_t count);
  void (*store_rows)(const R* x, R* to, int64_t row, int64_t valid, int64_t count, R scale);
  // Lines side by side: complex elements of a line are `step` reals apart, those of neighboring lines follow one
  // another.
  void (*load_columns)(R* x, const R* from, int64_t step, int64_t valid, int64_t n);
  void (*store_columns)(const R* x, R* to, int64_t step, int64_t valid, int64_t n, R scale);
  // The same of reals, taken for pairs.
  void (*load_real_columns)(R* x, const R* from, int64_t step, int64_t valid, int64_t count);
  void (*store_real_columns)(const R* x, R* to, int64_t step, int64_t valid, int64_t count, R scale);

  // x[i] = in[i] factors[i], the same for all lines.
  void (*multiply)(R* x, const R* in, const R* factors, int64_t n, bool swapped);
  // In place, between the transform of m complex numbers, which are 2m real ones, and m + 1 elements of the real ones'
  // transform; roots: the 2m-th. sign is 1, or -1 for the transforms with the other sign in the exponent.
  void (*separate)(R* x, const R* roots, int64_t m, R sign);
  void (*join)(R* x, const R* roots, int64_t m, R sign);
  // The same for a line in memory, its elements [begin, end) and m minus those; begin and end are multiples of the
  // lanes, but end may be m / 2 + 1. Before separate_line, x[m] is x[0].
  void (*separate_line)(R* x, const R* roots, int64_t m, R sign, int64_t begin, int64_t end);
  void (*join_line)(const R* x, R* to, const R* roots, int64_t m, R sign, int64_t begin, int64_t end);

  // Element i of line l times factors[i][2][l] becomes element l of line i, in blocks that are block_step apart.
  void (*turn)(const R* x, const R* factors, int64_t n, R* to, int64_t block_step, int64_t valid, bool swapped);
};

template <class R>
FourierKernels<R> fourier_kernels_baseline();
template <class R>
FourierKernels<R> fourier_kernels_avx2();
template <class R>
FourierKernels<R> fourier_kernels_avx512();
template <>
FourierKernels<float> fourier_kernels_baseline<float>();
template <>
FourierKernels<double> fourier_kernels_baseline<double>();
template <>
FourierKernels<float> fourier_kernels_avx2<float>();
template <>
FourierKernels<double> fourier_kernels_avx2<double>();
template <>
FourierKernels<float> fourier_kernels_avx512<float>();
template <>
FourierKernels<double> fourier_kernels_avx512<double>();

}  // namespace cresset
