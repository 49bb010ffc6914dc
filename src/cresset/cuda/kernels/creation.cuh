// Numbers by rule: arange, linspace, logspace, and the index pairs of triangles; complex numbers from their parts.
// RANGE, SPACE, TRIANGLE, PAIRS: which kernel is wanted.
#pragma once
#include "math.cuh"

#ifdef RANGE
// What a range counts in: 64-bit integers for integers, double for float and double, float for half precision.
template <class Element>
struct StepOf {
  using type = int64_t;
};
template <>
struct StepOf<float> {
  using type = double;
};
template <>
struct StepOf<double> {
  using type = double;
};
template <>
struct StepOf<half> {
  using type = float;
};
template <>
struct StepOf<bfloat16> {
  using type = float;
};

extern "C" __global__ void __launch_bounds__(256)
    count_up(T* out, int64_t n, double start, double step, int64_t integer_start, int64_t integer_step) {
  after_earlier_work();
  using Step = typename StepOf<T>::type;
  constexpr int kVector = sizeof(T) >= 16 ? 1 : 4;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) * kVector;
#pragma unroll
  for (int k = 0; k < kVector; ++k) {
    const int64_t i = first + k;
    if (i >= n) return;
    if constexpr (is_same<Step, int64_t>)
      out[i] = static_cast<T>(math::add(integer_start, math::mul(integer_step, i)));
    else
      out[i] = convert<T>(static_cast<Step>(start) + static_cast<Step>(step) * static_cast<Step>(i));
  }
}
#endif

#ifdef SPACE
// From start to stop in n > 1 steps, counting up in the first half and down from the end in the second.
// EXPONENTS: the numbers are exponents of `base`.
template <class Number>
__device__ __forceinline__ Number spaced(Number start, Number stop, int64_t i, int64_t n) {
  const Number step = (stop - start) / static_cast<Number>(n - 1);
  if (i < n / 2) return fma(step, static_cast<Number>(i), start);
  return fma(-step, static_cast<Number>(n - 1 - i), stop);
}
// Half-precision arithmetic: every step is rounded.
template <class Half>
__device__ __forceinline__ float rounded(float v) {
  return convert<float>(convert<Half>(v));
}
template <class Half>
__device__ __forceinline__ float spaced_half(float start, float stop, int64_t i, int64_t n) {
  const float step = rounded<Half>(rounded<Half>(stop - start) / rounded<Half>(static_cast<float>(n - 1)));
  if (i < n / 2) return rounded<Half>(start + rounded<Half>(step * rounded<Half>(static_cast<float>(i))));
  return rounded<Half>(stop - rounded<Half>(step * rounded<Half>(static_cast<float>(n - 1 - i))));
}
template <class Element>
__device__ __forceinline__ Element element(int64_t i, int64_t n, double start, double stop, double start_imag,
                                           double stop_imag) {
  if constexpr (is_complex<Element>) {
    using Part = part<opmath<Element>>;
    const Part re = spaced(static_cast<Part>(start), static_cast<Part>(stop), i, n);
    const Part im = spaced(static_cast<Part>(start_imag), static_cast<Part>(stop_imag), i, n);
    return convert<Element>(opmath<Element>(re, im));
  } else if constexpr (is_half<Element>) {
    return convert<Element>(spaced_half<Element>(static_cast<float>(start), static_cast<float>(stop), i, n));
  } else if constexpr (is_float<Element>) {
    return spaced(static_cast<Element>(start), static_cast<Element>(stop), i, n);
  } else {
    const double step = (stop - start) / static_cast<double>(n - 1);
    return convert<Element>(i < n / 2 ? start + step * static_cast<double>(i)
                                      : stop - step * static_cast<double>(n - 1 - i));
  }
}
extern "C" __global__ void __launch_bounds__(256)
    space(T* out, int64_t n, double start, double stop, double start_imag, double stop_imag, double base) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n) return;
#if EXPONENTS
  const double step = n > 1 ? (stop - start) / static_cast<double>(n - 1) : 0;
  const double exponent =
      n == 1 || i < n / 2 ? start + step * static_cast<double>(i) : stop - step * static_cast<double>(n - 1 - i);
  out[i] = convert<T>(pow(base, exponent));
#else
  out[i] = element<T>(i, n, start, stop, start_imag, stop_imag);
#endif
}
#endif

#ifdef TRIANGLE
#if SMALL  // all numbers below fit
using Place = int32_t;
using Wide = uint32_t;
#else
using Place = int64_t;
using Wide = int64_t;
#endif
// How many elements stand in the first `rows` rows of a triangle whose rows grow by one from `width` on.
CRESSET_INLINE Place in_rows(Place rows, Place width) {
  return static_cast<Place>(Wide(rows) * Wide(width) + Wide(rows) * Wide(rows - 1) / 2);
}
// pairs[0][i], pairs[1][i]: the row and column of the i-th element of the lower triangle; of the upper one the same
// counted from the end.
extern "C" __global__ void __launch_bounds__(256)
    triangle_pairs(T* pairs, int64_t n, int64_t rows, int64_t columns, int64_t offset) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n) return;
#if UPPER
  // Turned by half a turn the upper triangle from `offset` on is the lower one up to columns - rows - offset.
  const Place place = static_cast<Place>(n - 1 - i);
  const int64_t lower = columns - rows - offset;
#else
  const Place place = static_cast<Place>(i);
  const int64_t lower = offset;
#endif
  // Rows before `first` are empty, then they grow by one from `width` on, until they are full.
  const int64_t first = lower < 0 ? -lower : 0, grown = first + lower + 1;
  const Place width = static_cast<Place>(grown < columns ? grown : columns), most = static_cast<Place>(columns),
              last = static_cast<Place>(rows - first);
  const Place growing = most - width < last ? most - width : last, above = in_rows(growing, width);
  Place row, column;
  if (place < above) {
    // row (row - 1) / 2 + row width <= place, solved for the row; the root is rounded, so the neighbors are tried.
#if SMALL
    const float b = static_cast<float>(width) - 0.5f;
    row = static_cast<Place>(sqrtf(b * b + 2.0f * static_cast<float>(place)) - b);
#else
    const double b = static_cast<double>(width) - 0.5;
    row = static_cast<Place>(sqrt(b * b + 2.0 * static_cast<double>(place)) - b);
#endif
    if (row >= growing) row = growing - 1;
    while (row + 1 < growing && in_rows(row + 1, width) <= place) ++row;
    while (in_rows(row, width) > place) --row;
    column = place - in_rows(row, width);
  } else {
    const Place full = (place - above) / most;
    row = growing + full;
    column = place - above - full * most;
  }
#if UPPER
  pairs[i] = static_cast<T>(rows - 1 - first - row);
  pairs[n + i] = static_cast<T>(columns - 1 - column);
#else
  pairs[i] = static_cast<T>(first + row);
  pairs[n + i] = static_cast<T>(column);
#endif
}
#endif

#ifdef PAIRS
CRESSET_INLINE void sine_and_cosine(float x, float& sine, float& cosine) { ::sincosf(x, &sine, &cosine); }
CRESSET_INLINE void sine_and_cosine(double x, double& sine, double& cosine) { ::sincos(x, &sine, &cosine); }
// POLAR: from absolute values and angles, else from real and imaginary parts; VECTOR: numbers that a thread makes.
CRESSET_INLINE Vector<T, 2> pair_of(T first, T second) {
#if POLAR
  T sine, cosine;
  sine_and_cosine(second, sine, cosine);
  return {{first * cosine, first * sine}};
#else
  return {{first, second}};
#endif
}
extern "C" __global__ void __launch_bounds__(256) make_complex(const T* first, const T* second, T* pairs, int64_t n) {
  after_earlier_work();
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) * VECTOR;
#if VECTOR > 1
  if (at + VECTOR <= n) {
    const Vector<T, VECTOR> a = load_vector<VECTOR>(first + at), b = load_vector<VECTOR>(second + at);
    Vector<T, VECTOR> out[2];
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) {
      const Vector<T, 2> pair = pair_of(a.values[k], b.values[k]);
      out[2 * k / VECTOR].values[2 * k % VECTOR] = pair.values[0];
      out[2 * k / VECTOR].values[2 * k % VECTOR + 1] = pair.values[1];
    }
    store_vector(pairs + 2 * at, out[0]);
    store_vector(pairs + 2 * at + VECTOR, out[1]);
    return;
  }
#endif
  for (int64_t i = at; i < at + VECTOR && i < n; ++i) store_vector(pairs + 2 * i, pair_of(first[i], second[i]));
}
#endif
