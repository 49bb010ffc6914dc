// The passes of a Fourier transform over a block of lines (Note [Blocks of lines]), for the instruction set that the
// including file is compiled for. Everything is in an anonymous namespace: each instruction set has its own copy.
#pragma once
#include <utility>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "ops/fourier_kernels.h"

namespace cresset {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;  // of a vector
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

template <class R>
struct FourierVectors {
  static constexpr int kLanes = kBytes / static_cast<int>(sizeof(R));
  typedef R Vector __attribute__((vector_size(kBytes)));
  typedef R Loose __attribute__((vector_size(kBytes), aligned(alignof(R)), may_alias));
  static Vector load(const R* p) { return *reinterpret_cast<const Loose*>(p); }
  static void store(R* p, Vector v) { *reinterpret_cast<Loose*>(p) = v; }

  // Vectors of which only the first `count` numbers are in memory; none if it is negative.
  static Vector load_part(const R* p, int64_t count) {
    if (count >= kLanes) return load(p);
    Vector v = {};
    if (count <= 0) return v;
#if defined(__AVX512F__)
    const unsigned mask = (1u << count) - 1;
    if constexpr (sizeof(R) == 4)
      v = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), p);
    else
      v = _mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), p);
#else
    for (int64_t l = 0; l < count; ++l) v[l] = p[l];
#endif
    return v;
  }
  static void store_part(R* p, Vector v, int64_t count) {
    if (count >= kLanes) return store(p, v);
    if (count <= 0) return;
#if defined(__AVX512F__)
    const unsigned mask = (1u << count) - 1;
    if constexpr (sizeof(R) == 4)
      _mm512_mask_storeu_ps(p, static_cast<__mmask16>(mask), v);
    else
      _mm512_mask_storeu_pd(p, static_cast<__mmask8>(mask), v);
#else
    for (int64_t l = 0; l < count; ++l) p[l] = v[l];
#endif
  }
};

// A complex number of each line.
template <class R>
struct Number {
  using V = typename FourierVectors<R>::Vector;
  V re, im;
  friend Number operator+(Number a, Number b) { return {a.re + b.re, a.im + b.im}; }
  friend Number operator-(Number a, Number b) { return {a.re - b.re, a.im - b.im}; }
  Number times(R c, R s) const { return {re * c - im * s, re * s + im * c}; }
  Number times_minus_i() const { return {im, -re}; }
};

// f(0), ... f(N - 1), where the compiler knows each number.
template <int N, class F>
inline void each(F&& f) {
  [&]<int... k>(std::integer_sequence<int, k...>) {
    (f(std::integral_constant<int, k>()), ...);
  }(std::make_integer_sequence<int, N>());
}

template <class R>
struct Butterflies {
  using Z = Number<R>;

  static void four(Z& a, Z& b, Z& c, Z& d) {
    const Z even = a + c, odd = a - c, sum = b + d, turned = (b - d).times_minus_i();
    a = even + sum, b = odd + turned, c = even - sum, d = odd - turned;
  }

  // The transform of P numbers, in place.
  template <int P>
  static void run(Z (&a)[P], const R* circle) {
    if constexpr (P == 2) {
      const Z sum = a[0] + a[1];
      a[1] = a[0] - a[1];
      a[0] = sum;
    } else if constexpr (P == 4) {
      four(a[0], a[1], a[2], a[3]);
    } else if constexpr (P == 8) {
      constexpr R h = static_cast<R>(0.70710678118654752440L);
      four(a[0], a[2], a[4], a[6]);
      four(a[1], a[3], a[5], a[7]);
      const Z one = {(a[3].re + a[3].im) * h, (a[3].im - a[3].re) * h}, two = a[5].times_minus_i(),
              three = {(a[7].im - a[7].re) * h, (a[7].re + a[7].im) * -h}, odd[4] = {a[1], one, two, three},
              even[4] = {a[0], a[2], a[4], a[6]};
      each<4>([&](auto k) {
        a[k] = even[k] + odd[k];
        a[k + 4] = even[k] - odd[k];
      });
    } else {
      odd<P>(a, circle, std::integral_constant<int, P>());
    }
  }

  // An odd number of them, by the sums and differences of the pairs q and p - q.
  template <int P>
  static void odd(Z (&a)[P], const R* circle, std::integral_constant<int, P>) {
    constexpr int kHalf = P / 2;
    Z sums[kHalf], differences[kHalf];
    each<kHalf>([&](auto q) {
      sums[q] = a[q + 1] + a[P - 1 - q];
      differences[q] = a[q + 1] - a[P - 1 - q];
    });
    const Z first = a[0];
    each<kHalf>([&](auto q) { a[0] = a[0] + sums[q]; });
    each<kHalf>([&](auto row) {
      constexpr int j = decltype(row)::value + 1;
      Z even = first, odd = {};
      each<kHalf>([&](auto q) {
        constexpr int at = 2 * (j * (decltype(q)::value + 1) % P);
        even.re += sums[q].re * circle[at], even.im += sums[q].im * circle[at];
        odd.re += differences[q].re * circle[at + 1], odd.im += differences[q].im * circle[at + 1];
      });
      a[j] = even + odd.times_minus_i();
      a[P - j] = even - odd.times_minus_i();
    });
  }
  static void any(Z* a, const R* circle, int p) {
    Z sums[kLargestRadix / 2], differences[kLargestRadix / 2];
    const int half = p / 2;
    const Z first = a[0];
    for (int q = 0; q < half; ++q) {
      sums[q] = a[q + 1] + a[p - 1 - q];
      differences[q] = a[q + 1] - a[p - 1 - q];
      a[0] = a[0] + sums[q];
    }
    for (int j = 1; j <= half; ++j) {
      Z even = first, odd = {};
      for (int q = 0, at = j; q < half; ++q, at = at + j >= p ? at + j - p : at + j) {
        even.re += sums[q].re * circle[2 * at], even.im += sums[q].im * circle[2 * at];
        odd.re += differences[q].re * circle[2 * at + 1], odd.im += differences[q].im * circle[2 * at + 1];
      }
      a[j] = even + odd.times_minus_i();
      a[p - j] = even - odd.times_minus_i();
    }
  }
};

template <class R>
struct Passes : FourierVectors<R> {
  using Z = Number<R>;
  using FourierVectors<R>::load, FourierVectors<R>::store;
  static constexpr int kLanes = FourierVectors<R>::kLanes;
  static constexpr int64_t kNumber = 2 * kLanes;

  // The compiler would keep an address for each part of each number, more than there are registers.
  template <class P>
  static P one_address(P p) {
    asm("" : "+r"(p));
    return p;
  }

  // kTurned: the roots of unity for (i, j) are not all one.
  template <int P, bool kTurned, bool kSwapped>
  [[gnu::flatten]] static void pass(const FourierPass<R>& f, const R* in, R* out) {
    constexpr int re = kSwapped ? kLanes : 0, im = kLanes - re;
    const int64_t between = f.inner * kNumber, apart = f.done * between + f.gap_out * kNumber;
    R circle[2 * P];  // a copy: the compiler sees that no store changes it
    if constexpr (P % 2) each<2 * P>([&](auto j) { circle[j] = f.circle[j]; });
    const R* from = in;
    R* to = out;
    for (int64_t k = 0, left = f.joined; k < f.done; ++k, from += (P - 1) * between) {
      const R* roots = f.roots;
      if (left-- == 0) left = f.joined - 1, from += f.gap_in * kNumber;
      for (int64_t i = 0; i < f.inner; ++i, from += kNumber, to += kNumber, roots += 2 * (P - 1)) {
        Z a[P];
        each<P>([&](auto q) {
          const R* p = one_address(from + q * between);
          a[q] = {load(p + re), load(p + im)};
        });
        Butterflies<R>::template run<P>(a, circle);
        if constexpr (kTurned) each<P - 1>([&](auto j) { a[j + 1] = a[j + 1].times(roots[2 * j], roots[2 * j + 1]); });
        each<P>([&](auto j) {
          R* p = one_address(to + j * apart);
          store(p + re, a[j].re);
          store(p + im, a[j].im);
        });
      }
    }
  }
  [[gnu::flatten]] static void any_pass(const FourierPass<R>& f, const R* in, R* out, bool swapped) {
    const int64_t between = f.inner * kNumber, apart = f.done * between + f.gap_out * kNumber, p = f.radix,
                  re = swapped ? kLanes : 0, im = kLanes - re;
    for (int64_t k = 0; k < f.done; ++k)
      for (int64_t i = 0; i < f.inner; ++i) {
        Z a[kLargestRadix];
        const R *from = in + k * p * between + (k / f.joined * f.gap_in + i) * kNumber,
                *roots = f.roots + 2 * i * (p - 1);
        R* to = out + k * between + i * kNumber;
        a[0] = {load(from + re), load(from + im)};
        for (int64_t q = 1; q < p; ++q) a[q] = {load(from + q * between + re), load(from + q * between + im)};
        Butterflies<R>::any(a, f.circle, static_cast<int>(p));
        for (int64_t j = 1; j < p; ++j) a[j] = a[j].times(roots[2 * j - 2], roots[2 * j - 1]);
        for (int64_t j = 0; j < p; ++j) {
          store(to + j * apart + re, a[j].re);
          store(to + j * apart + im, a[j].im);
        }
      }
  }

  template <int P>
  static void sized(const FourierPass<R>& f, const R* in, R* out, bool swapped) {
    if (f.inner == 1)
      swapped ? pass<P, false, true>(f, in, out) : pass<P, false, false>(f, in, out);
    else
      swapped ? pass<P, true, true>(f, in, out) : pass<P, true, false>(f, in, out);
  }

  static R* transform(const FourierPass<R>* passes, int64_t count, R* x, R* y, bool swapped) {
    for (const FourierPass<R>* f = passes; f < passes + count; ++f) {
      switch (f->radix) {
        case 2: sized<2>(*f, x, y, swapped); break;
        case 3: sized<3>(*f, x, y, swapped); break;
        case 4: sized<4>(*f, x, y, swapped); break;
        case 5: sized<5>(*f, x, y, swapped); break;
        case 7: sized<7>(*f, x, y, swapped); break;
        case 8: sized<8>(*f, x, y, swapped); break;
        default: any_pass(*f, x, y, swapped);
      }
      std::swap(x, y);
    }
    return x;
  }
};

}  // namespace
}  // namespace cresset
