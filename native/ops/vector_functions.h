// exp, the logistic function and tanh of whole vectors, for the instruction set that the including file is compiled
// for. To a unit or two in the last place; products and sums may be contracted, so the bits depend on the instruction
// set. In an anonymous namespace: each has its own copy.
#pragma once
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <cstring>

#include "base/exponentials.h"
#include "ops/gemm_tiles.h"

namespace cresset {
namespace {

template <class C>
struct VectorFunctions {
  static constexpr int kLanes = Kernels<C>::kLanes;
  using Vector = typename Kernels<C>::Vector;

  // Vectors of which only the first n numbers are in memory, if n is less than a vector has.
  static Vector load(const C* p, int64_t n) {
    if (n >= kLanes) return Kernels<C>::at(p);
    Vector v = {};
    std::memcpy(&v, p, static_cast<size_t>(n) * sizeof(C));
    return v;
  }
  static void store(C* p, int64_t n, const Vector& v) {
    if (n >= kLanes)
      Kernels<C>::at(p) = v;
    else
      std::memcpy(p, &v, static_cast<size_t>(n) * sizeof(C));
  }

  // exp(x) for x <= 0; below the normal numbers it is 0.
  static Vector exp(Vector x) {
    if constexpr (sizeof(C) == 4) {
      typedef int32_t Whole __attribute__((vector_size(kBytes)));
      constexpr C kLowest = -87.3f;
      const Vector shifted = x * 1.44269504f + 12582912.0f, n = shifted - 12582912.0f;
      const Vector r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
      Vector tail = 0.00836874583f + r * 0.00138146205f;
      tail = 0.0416683893f + r * tail;
      tail = 0.166665204f + r * tail;
      tail = 0.499999934f + r * tail;
      const Vector scale = reinterpret_cast<Vector>((reinterpret_cast<Whole>(shifted) + 127) << 23);
      const Vector result = (1.0f + (r + r * r * tail)) * scale;
      return x < kLowest ? Vector{} : result;
    } else {
      typedef int64_t Whole __attribute__((vector_size(kBytes)));
      constexpr C kLowest = -708.0, kRound = 6755399441055744.0;
      constexpr C c[] = {2.500014639539292172e-8, 2.763030906943137646e-7,  2.755758675242567968e-6,
                         2.480149294597547979e-5, 0.0001984126950531575232, 0.001388888894375726094,
                         0.008333333333495512952, 0.04166666666652978020,   0.1666666666666640993,
                         0.5000000000000010651};
      const Vector shifted = x * 1.4426950408889634 + kRound, n = shifted - kRound;
      const Vector r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
      Vector tail = Vector{} + c[0];
#pragma GCC unroll 16
      for (int i = 1; i < 10; ++i) tail = c[i] + r * tail;
      const Vector scale = reinterpret_cast<Vector>((reinterpret_cast<Whole>(shifted) + 1023) << 52);
      const Vector result = (1.0 + (r + r * r * tail)) * scale;
      return x < kLowest ? Vector{} : result;
    }
  }

  // 1 / x for 1 <= x <= 2: an estimate of 14 bits and one step of Newton's take a third of the time of a division.
  static Vector inverse(Vector x) {
#if defined(__AVX512F__)
    if constexpr (sizeof(C) == 4) {
      const Vector y = reinterpret_cast<Vector>(_mm512_maskz_rcp14_ps(0xffff, reinterpret_cast<__m512>(x)));
      return y + y * (1.0f - x * y);
    }
#endif
    return C(1) / x;
  }
  static Vector absolute(Vector x) {
    if constexpr (sizeof(C) == 4) {
      typedef int32_t Whole __attribute__((vector_size(kBytes)));
      return reinterpret_cast<Vector>(reinterpret_cast<Whole>(x) & 0x7fffffff);
    } else {
      typedef int64_t Whole __attribute__((vector_size(kBytes)));
      return reinterpret_cast<Vector>(reinterpret_cast<Whole>(x) & 0x7fffffffffffffff);
    }
  }

  // With e = exp(-|x|): 1 / (1 + e), or e / (1 + e) for negative x.
  static Vector sigmoid(Vector x) {
    const Vector e = exp(-absolute(x)), part = inverse(C(1) + e);
    return x < C(0) ? e * part : part;
  }
  static Vector tanh(Vector x) {
    if constexpr (sizeof(C) == 4) {
      const Vector size = absolute(x), z = x * x;
      Vector slope = 0.0206325809f + z * -0.00569742051f;
      slope = -0.0537378093f + z * slope;
      slope = 0.133314205f + z * slope;
      slope = -0.333332812f + z * slope;
      const Vector near = x + x * (z * slope);
      // (1 - e) / (1 + e) with e = exp(-2 |x|)
      const Vector e = exp(size * -2.0f), far = (1.0f - e) * inverse(1.0f + e);
      return size < 0.625f ? near : x < 0.0f ? -far : far;
    } else {
      Vector y;
      for (int i = 0; i < kLanes; ++i) y[i] = math::tanh(x[i]);
      return y;
    }
  }
};

}  // namespace
}  // namespace cresset
