// How lines get into blocks and out of them, and what is done with blocks beside their transforms (Note [Blocks of lines]), for the instruction
// set that the including file is compiled for. Everything is in an anonymous namespace: each instruction set has its own copy.
#pragma once
#include "ops/fourier_butterflies.h"

namespace cresset {
namespace {

template <class R>
struct Blocks : FourierVectors<R> {
  using Z = Number<R>;
  using typename FourierVectors<R>::Vector;
  using FourierVectors<R>::load, FourierVectors<R>::store;
  static constexpr int kLanes = FourierVectors<R>::kLanes;
  static constexpr int64_t kNumber = 2 * kLanes;

  // ---- rearranging vectors

  // The element of a (those below kLanes) or b that goes to `at` when two lines exchange what lies `s` from the diagonal.
  static constexpr int upper(int at, int s) { return at & s ? kLanes + at - s : at; }
  static constexpr int lower(int at, int s) { return at & s ? kLanes + at : at + s; }
  template <int S, int... at>
  static void exchange(Vector& a, Vector& b, std::integer_sequence<int, at...>) {
    const Vector above = __builtin_shufflevector(a, b, upper(at, S)...);
    b = __builtin_shufflevector(a, b, lower(at, S)...);
    a = above;
  }
  template <int S>
  static void transpose_from(Vector (&v)[kLanes]) {
    if constexpr (S > 0) {
      each<kLanes>([&](auto i) {
        if constexpr ((decltype(i)::value & S) == 0) exchange<S>(v[i], v[i + S], std::make_integer_sequence<int, kLanes>());
      });
      transpose_from<S / 2>(v);
    }
  }
  static void transpose(Vector (&v)[kLanes]) { transpose_from<kLanes / 2>(v); }

  template <int... at>
  static Z split(Vector a, Vector b, std::integer_sequence<int, at...>) {
    return {__builtin_shufflevector(a, b, (2 * at)...), __builtin_shufflevector(a, b, (2 * at + 1)...)};
  }
  template <int kFirst, int... at>
  static Vector mix(Z z, std::integer_sequence<int, at...>) {
    return __builtin_shufflevector(z.re, z.im, ((kFirst + at) / 2 + (at % 2) * kLanes)...);
  }
  static constexpr auto kEach = std::make_integer_sequence<int, kLanes>();

  // ---- lines that follow one another

  static void load_rows(R* x, const R* from, int64_t row, int64_t valid, int64_t count) {
    int64_t c = 0;
    for (; c + kLanes <= count; c += kLanes) {
      Vector v[kLanes];
      if (valid == kLanes) each<kLanes>([&](auto l) { v[l] = load(from + l * row + c); });
      else each<kLanes>([&](auto l) { v[l] = load(from + (l < valid ? l : 0) * row + c); });
      transpose(v);
      each<kLanes>([&](auto l) { store(x + (c + l) * kLanes, v[l]); });
    }
    for (; c < count; ++c)
      for (int64_t l = 0; l < kLanes; ++l) x[c * kLanes + l] = from[(l < valid ? l : 0) * row + c];
  }
  static void store_rows(const R* x, R* to, int64_t row, int64_t valid, int64_t count, R scale) {
    int64_t c = 0;
    for (; c + kLanes <= count; c += kLanes) {
      Vector v[kLanes];
      each<kLanes>([&](auto l) { v[l] = load(x + (c + l) * kLanes) * scale; });
      transpose(v);
      if (valid == kLanes) each<kLanes>([&](auto l) { store(to + l * row + c, v[l]); });
      else each<kLanes>([&](auto l) { if (l < valid) store(to + l * row + c, v[l]); });
    }
    for (; c < count; ++c)
      for (int64_t l = 0; l < valid; ++l) to[l * row + c] = x[c * kLanes + l] * scale;
  }

  // ---- lines side by side

  static void load_columns(R* x, const R* from, int64_t step, int64_t valid, int64_t n) {
    if (valid == kLanes)
      for (int64_t i = 0; i < n; ++i, from += step, x += kNumber) {
        const Z z = split(load(from), load(from + kLanes), kEach);
        store(x, z.re), store(x + kLanes, z.im);
      }
    else
      for (int64_t i = 0; i < n; ++i, from += step, x += kNumber)
        for (int64_t l = 0; l < kLanes; ++l) {
          x[l] = l < valid ? from[2 * l] : R(0);
          x[l + kLanes] = l < valid ? from[2 * l + 1] : R(0);
        }
  }
  static void store_columns(const R* x, R* to, int64_t step, int64_t valid, int64_t n, R scale) {
    if (valid == kLanes)
      for (int64_t i = 0; i < n; ++i, to += step, x += kNumber) {
        const Z z = {load(x) * scale, load(x + kLanes) * scale};
        store(to, mix<0>(z, kEach)), store(to + kLanes, mix<kLanes>(z, kEach));
      }
    else
      for (int64_t i = 0; i < n; ++i, to += step, x += kNumber)
        for (int64_t l = 0; l < valid; ++l) {
          to[2 * l] = x[l] * scale;
          to[2 * l + 1] = x[l + kLanes] * scale;
        }
  }
  static void load_real_columns(R* x, const R* from, int64_t step, int64_t valid, int64_t count) {
    if (valid == kLanes)
      for (int64_t i = 0; i < count; ++i) store(x + i * kLanes, load(from + i * step));
    else
      for (int64_t i = 0; i < count; ++i)
        for (int64_t l = 0; l < kLanes; ++l) x[i * kLanes + l] = l < valid ? from[i * step + l] : R(0);
  }
  static void store_real_columns(const R* x, R* to, int64_t step, int64_t valid, int64_t count, R scale) {
    if (valid == kLanes)
      for (int64_t i = 0; i < count; ++i) store(to + i * step, load(x + i * kLanes) * scale);
    else
      for (int64_t i = 0; i < count; ++i)
        for (int64_t l = 0; l < valid; ++l) to[i * step + l] = x[i * kLanes + l] * scale;
  }

  // ---- between transforms

  static Z number(const R* p) { return {load(p), load(p + kLanes)}; }
  static void put(R* p, Z z) { store(p, z.re), store(p + kLanes, z.im); }

  static void multiply(R* x, const R* in, const R* factors, int64_t n, bool swapped) {
    const int64_t re = swapped ? kLanes : 0, im = kLanes - re;
    for (int64_t i = 0; i < n; ++i, x += kNumber, in += kNumber, factors += 2) {
      const Z z = Z{load(in + re), load(in + im)}.times(factors[0], factors[1]);
      store(x + re, z.re), store(x + im, z.im);
    }
  }

  // With Z = E + iO of the even and the odd elements, which are real: X[k] = E[k] + w^k O[k], and X[m - k] is the conjugate of E[k] - w^k O[k].
  static void separate(R* x, const R* roots, int64_t m, R sign) {
    const R half = R(0.5), signed_half = half * sign;
    for (int64_t k = 0; 2 * k <= m; ++k) {
      R *const left = x + k * kNumber, *const right = x + (m - k) * kNumber;
      const Z a = number(left), b = k ? number(right) : a;
      const Z even = {a.re + b.re, a.im - b.im}, odd = Z{a.im + b.im, b.re - a.re}.times(roots[2 * k], roots[2 * k + 1]);
      put(left, {(even.re + odd.re) * half, (even.im + odd.im) * signed_half});
      put(right, {(even.re - odd.re) * half, (odd.im - even.im) * signed_half});
    }
  }
  // The way back, not halved. What contradicts a real signal is not read.
  static void join(R* x, const R* roots, int64_t m, R sign) {
    store(x + kLanes, Vector{}), store(x + m * kNumber + kLanes, Vector{});
    for (int64_t k = 0; 2 * k <= m; ++k) {
      R *const left = x + k * kNumber, *const right = x + (m - k) * kNumber;
      const Z a = {load(left), load(left + kLanes) * sign}, b = {load(right), load(right + kLanes) * sign};
      const Z even = {a.re + b.re, a.im - b.im}, odd = Z{a.re - b.re, a.im + b.im}.times(roots[2 * k], -roots[2 * k + 1]);
      put(left, {even.re - odd.im, even.im + odd.re});
      if (k) put(right, {even.re + odd.im, odd.re - even.im});
    }
  }

  static void turn(const R* x, const R* factors, int64_t n, R* to, int64_t block_step, int64_t valid, bool swapped) {
    const int64_t re = swapped ? kLanes : 0, im = kLanes - re;
    for (int64_t i = 0; i < n; i += kLanes, to += block_step) {
      Vector real[kLanes], imaginary[kLanes];
      for (int64_t l = 0; l < kLanes; ++l) {
        const int64_t at = (i + l < n ? i + l : n - 1) * kNumber;
        const Vector a = load(x + at + re), b = load(x + at + im), c = load(factors + at), s = load(factors + at + kLanes);
        real[l] = a * c - b * s, imaginary[l] = a * s + b * c;
      }
      transpose(real);
      for (int64_t l = 0; l < valid; ++l) store(to + l * kNumber + re, real[l]);
      transpose(imaginary);
      for (int64_t l = 0; l < valid; ++l) store(to + l * kNumber + im, imaginary[l]);
    }
  }

  static FourierKernels<R> kernels() {
    return {kLanes,           Passes<R>::transform, load_rows,          store_rows, load_columns, store_columns,
            load_real_columns, store_real_columns,   multiply, separate,   join,         turn};
  }
};

}  // namespace
}  // namespace cresset
