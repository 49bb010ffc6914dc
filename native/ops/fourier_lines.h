// Fourier transforms of all lines of a contiguous array: complex ones, of real lines, and to real lines.
#pragma once
#include <cstdint>

namespace cresset {

// Lines of n elements: element i of line (o, j) is at (o * n + i) * inner + j, o < outer and j < inner.
struct LineShape {
  int64_t outer, n, inner;
};

// Forward is exp(-i...). in and out may be the same. Complex numbers are pairs of reals.
template <class R>
void transform_complex(const R* in, R* out, LineShape shape, bool forward, R scale);
// From lines of shape.n reals to the first half of their transforms, n / 2 + 1 numbers.
template <class R>
void transform_from_real(const R* in, R* out, LineShape shape, bool forward, R scale);
// And back; shape.n is the number of reals.
template <class R>
void transform_to_real(const R* in, R* out, LineShape shape, bool forward, R scale);

}  // namespace cresset
