// How lines get into blocks and out of them, and what is done with blocks beside their transforms (Note [Blocks of
// lines]), for the instruction set that the including file is compiled for. Everything is in an anonymous namespace:
// each instruction set has its own copy.
#pragma once
#include "ops/fourier_butterflies.h"

namespace cresset {
namespace {

template <class R>
struct Blocks : FourierVectors<R> {
  using Z = Number<R>;
  using typename FourierVectors<R>::Vector;
  using FourierVectors<R>::load, FourierVectors<R>::store, FourierVectors<R>::load_part, FourierVectors<R>::store_part;
  static constexpr int kLanes = FourierVectors<R>::kLanes;
  static constexpr int64_t kNumber = 2 * kLanes;

  // ---- rearranging vectors

  // The element of a (those below kLanes) or b that goes to `at` when two lines exchange what lies `s` from the
  // diagonal.
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
        if constexpr ((decltype(i)::value & S) == 0)
          exchange<S>(v[i], v[i + S], std::make_integer_sequence<int, kLanes>());
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

  [[gnu::flatten]] static void load_rows(R* x, const R* from, int64_t row, int64_t valid, int64_t count) {
    int64_t c = 0;
    for (; c + kLanes <= count; c += kLanes) {
      Vector v[kLanes];
      if (valid == kLanes)
        each<kLanes>([&](auto l) { v[l] = load(from + l * row + c); });
      else
        each<kLanes>([&](auto l) { v[l] = load(from + (l < valid ? l : 0) * row + c); });
      transpose(v);
      each<kLanes>([&](auto l) { store(x + (c + l) * kLanes, v[l]); });
    }
    for (; c < count; ++c)
      for (int64_t l = 0; l < kLanes; ++l) x[c * kLanes + l] = from[(l < valid ? l : 0) * row + c];
  }
  [[gnu::flatten]] static void store_rows(const R* x, R* to, int64_t row, int64_t valid, int64_t count, R scale) {
    int64_t c = 0;
    for (; c + kLanes <= count; c += kLanes) {
      Vector v[kLanes];
      each<kLanes>([&](auto l) { v[l] = load(x + (c + l) * kLanes) * scale; });
      transpose(v);
      if (valid == kLanes)
        each<kLanes>([&](auto l) { store(to + l * row + c, v[l]); });
      else
        each<kLanes>([&](auto l) {
          if (l < valid) store(to + l * row + c, v[l]);
        });
    }
    for (; c < count; ++c)
      for (int64_t l = 0; l < valid; ++l) to[l * row + c] = x[c * kLanes + l] * scale;
  }

  // ---- lines side by side

  [[gnu::flatten]] static void load_columns(R* x, const R* from, int64_t step, int64_t valid, int64_t n) {
    if (valid == kLanes)
      for (int64_t i = 0; i < n; ++i, from += step, x += kNumber) put(x, split(load(from), load(from + kLanes), kEach));
    else
      for (int64_t i = 0; i < n; ++i, from += step, x += kNumber)
        put(x, split(load_part(from, 2 * valid), load_part(from + kLanes, 2 * valid - kLanes), kEach));
  }
  [[gnu::flatten]] static void store_columns(const R* x, R* to, int64_t step, int64_t valid, int64_t n, R scale) {
    for (int64_t i = 0; i < n; ++i, to += step, x += kNumber) {
      const Z z = {load(x) * scale, load(x + kLanes) * scale};
      const Vector first = mix<0>(z, kEach), second = mix<kLanes>(z, kEach);
      if (valid == kLanes)
        store(to, first), store(to + kLanes, second);
      else
        store_part(to, first, 2 * valid), store_part(to + kLanes, second, 2 * valid - kLanes);
    }
  }
  static void load_real_columns(R* x, const R* from, int64_t step, int64_t valid, int64_t count) {
    for (int64_t i = 0; i < count; ++i) store(x + i * kLanes, load_part(from + i * step, valid));
  }
  static void store_real_columns(const R* x, R* to, int64_t step, int64_t valid, int64_t count, R scale) {
    for (int64_t i = 0; i < count; ++i) store_part(to + i * step, load(x + i * kLanes) * scale, valid);
  }

  // ---- between transforms

  static Z number(const R* p) { return {load(p), load(p + kLanes)}; }
  static void put(R* p, Z z) { store(p, z.re), store(p + kLanes, z.im); }

  [[gnu::flatten]] static void multiply(R* x, const R* in, const R* factors, int64_t n, bool swapped) {
    const int64_t re = swapped ? kLanes : 0, im = kLanes - re;
    for (int64_t i = 0; i < n; ++i, x += kNumber, in += kNumber, factors += 2) {
      const Z z = Z{load(in + re), load(in + im)}.times(factors[0], factors[1]);
      store(x + re, z.re), store(x + im, z.im);
    }
  }

  // With Z = E + iO of the even and the odd elements, which are real: X[k] = E[k] + w^k O[k], and X[m - k] is the
  // conjugate of E[k] - w^k O[k]. a and b are elements k and m - k, numbers or vectors of them, and w^k = c + is.
  template <class T, class S>
  static void separate_pair(T& a_re, T& a_im, T& b_re, T& b_im, S c, S s, R sign) {
    const R half = R(0.5), signed_half = half * sign;
    const T even_re = a_re + b_re, even_im = a_im - b_im, re = a_im + b_im, im = b_re - a_re, odd_re = re * c - im * s,
            odd_im = re * s + im * c;
    a_re = (even_re + odd_re) * half, a_im = (even_im + odd_im) * signed_half;
    b_re = (even_re - odd_re) * half, b_im = (odd_im - even_im) * signed_half;
  }
  // The way back, not halved.
  template <class T, class S>
  static void join_pair(T& a_re, T& a_im, T& b_re, T& b_im, S c, S s, R sign) {
    const T even_re = a_re + b_re, even_im = (a_im - b_im) * sign, re = a_re - b_re, im = (a_im + b_im) * sign,
            odd_re = re * c + im * s, odd_im = im * c - re * s;
    a_re = even_re - odd_im, a_im = even_im + odd_re;
    b_re = even_re + odd_im, b_im = odd_re - even_im;
  }

  [[gnu::flatten]] static void separate(R* x, const R* roots, int64_t m, R sign) {
    for (int64_t k = 0; 2 * k <= m; ++k) {
      R *const left = x + k * kNumber, *const right = x + (m - k) * kNumber;
      Z a = number(left), b = k ? number(right) : a;
      separate_pair(a.re, a.im, b.re, b.im, roots[2 * k], roots[2 * k + 1], sign);
      put(left, a), put(right, b);
    }
  }
  // What contradicts a real signal is not read.
  [[gnu::flatten]] static void join(R* x, const R* roots, int64_t m, R sign) {
    store(x + kLanes, Vector{}), store(x + m * kNumber + kLanes, Vector{});
    for (int64_t k = 0; 2 * k <= m; ++k) {
      R *const left = x + k * kNumber, *const right = x + (m - k) * kNumber;
      Z a = number(left), b = number(right);
      join_pair(a.re, a.im, b.re, b.im, roots[2 * k], roots[2 * k + 1], sign);
      put(left, a);
      if (k) put(right, b);
    }
  }

  // Neighboring elements of a line, in order or backwards.
  template <int... at>
  static Vector reversed(Vector v, std::integer_sequence<int, at...>) {
    return __builtin_shufflevector(v, v, (kLanes - 1 - at)...);
  }
  static Z reversed(Z z) { return {reversed(z.re, kEach), reversed(z.im, kEach)}; }
  static Z neighbors(const R* p) { return split(load(p), load(p + kLanes), kEach); }
  static void put_neighbors(R* p, Z z) { store(p, mix<0>(z, kEach)), store(p + kLanes, mix<kLanes>(z, kEach)); }

  [[gnu::flatten]] static void separate_line(R* x, const R* roots, int64_t m, R sign, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end;) {
      R *const left = x + 2 * k, *const right = x + 2 * (m - k);
      if (k + kLanes <= end && 2 * (k + kLanes) <= m) {
        R* const first = right - 2 * (kLanes - 1);
        const Z w = neighbors(roots + 2 * k);
        Z a = neighbors(left), b = reversed(neighbors(first));
        separate_pair(a.re, a.im, b.re, b.im, w.re, w.im, sign);
        put_neighbors(left, a), put_neighbors(first, reversed(b));
        k += kLanes;
      } else {
        R a[2] = {left[0], left[1]}, b[2] = {right[0], right[1]};
        separate_pair(a[0], a[1], b[0], b[1], roots[2 * k], roots[2 * k + 1], sign);
        left[0] = a[0], left[1] = a[1], right[0] = b[0], right[1] = b[1];
        ++k;
      }
    }
  }
  [[gnu::flatten]] static void join_line(const R* x, R* to, const R* roots, int64_t m, R sign, int64_t begin,
                                         int64_t end) {
    for (int64_t k = begin; k < end;) {
      const R *const left = x + 2 * k, *const right = x + 2 * (m - k);
      if (k > 0 && k % kLanes == 0 && k + kLanes <= end && 2 * (k + kLanes) <= m) {
        const int64_t first = 2 * (m - k - kLanes + 1);
        const Z w = neighbors(roots + 2 * k);
        Z a = neighbors(left), b = reversed(neighbors(x + first));
        join_pair(a.re, a.im, b.re, b.im, w.re, w.im, sign);
        put_neighbors(to + 2 * k, a), put_neighbors(to + first, reversed(b));
        k += kLanes;
      } else {
        R a[2] = {left[0], k ? left[1] : R(0)}, b[2] = {right[0], k ? right[1] : R(0)};
        join_pair(a[0], a[1], b[0], b[1], roots[2 * k], roots[2 * k + 1], sign);
        to[2 * k] = a[0], to[2 * k + 1] = a[1];
        if (k) to[2 * (m - k)] = b[0], to[2 * (m - k) + 1] = b[1];
        ++k;
      }
    }
  }

  [[gnu::flatten]] static void turn(const R* x, const R* factors, int64_t n, R* to, int64_t block_step, int64_t valid,
                                    bool swapped) {
    const int64_t re = swapped ? kLanes : 0, im = kLanes - re;
    for (int64_t i = 0; i < n; i += kLanes, to += block_step) {
      Vector real[kLanes], imaginary[kLanes];
      each<kLanes>([&](auto l) {
        const int64_t at = (i + l < n ? i + l : n - 1) * kNumber;
        const Vector a = load(x + at + re), b = load(x + at + im), c = load(factors + at),
                     s = load(factors + at + kLanes);
        real[l] = a * c - b * s, imaginary[l] = a * s + b * c;
      });
      transpose(real);
      each<kLanes>([&](auto l) {
        if (l < valid) store(to + l * kNumber + re, real[l]);
      });
      transpose(imaginary);
      each<kLanes>([&](auto l) {
        if (l < valid) store(to + l * kNumber + im, imaginary[l]);
      });
    }
  }

  static FourierKernels<R> kernels() {
    return {kLanes,        Passes<R>::transform, load_rows,          store_rows, load_columns,
            store_columns, load_real_columns,    store_real_columns, multiply,   separate,
            join,          separate_line,        join_line,          turn};
  }
};

}  // namespace
}  // namespace cresset
