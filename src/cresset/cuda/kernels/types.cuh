// The types of kernels: whole numbers, halves, complex numbers, one alias a dtype, and conversions between them.
//
// Compiled by NVRTC, which knows no header of CUDA or C++, and by g++ for the emulator (CRESSET_EMULATED). A header
// that is a link into native/base is shared with the CPU's loops: CRESSET_DEVICE and CRESSET_INLINE mark its functions.
// -D option: PLAIN_TYPES, where neither complex numbers nor floats of 8 bits are used.
#pragma once
#define CRESSET_KERNEL
#define CRESSET_DEVICE __device__
#define CRESSET_INLINE __device__ __forceinline__

#ifdef CRESSET_EMULATED
#include <cmath>
#include <cstdint>
#else
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define INT64_MIN (-9223372036854775807LL - 1)
#endif

namespace cresset {

#ifndef CRESSET_EMULATED
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long;
using uint64_t = unsigned long;
using size_t = unsigned long;
#endif

// The first statement of every kernel, but for `prefetch`. See Note [Launched early] in native/cuda/launch.cpp.
CRESSET_INLINE void after_earlier_work() {
#if !defined(CRESSET_EMULATED) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Asks for memory to be brought into the device's cache: so many bytes, a multiple of 16, from a place that is one,
// too. Whoever writes to it later writes to the cache, so a kernel may ask before the work that it waits for is done.
CRESSET_INLINE void prefetch(const void* from, int64_t bytes) {
#if !defined(CRESSET_EMULATED) && __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(static_cast<uint32_t>(bytes)) : "memory");
#endif
}

// ---- what templates ask about types ----

template <class A, class B>
constexpr bool is_same = false;
template <class A>
constexpr bool is_same<A, A> = true;
template <class T>
constexpr bool is_float = is_same<T, float> || is_same<T, double>;
template <class T>
constexpr bool is_signed_integer =
    is_same<T, int8_t> || is_same<T, int16_t> || is_same<T, int32_t> || is_same<T, int64_t>;
template <class T>
constexpr bool is_unsigned_integer =
    is_same<T, uint8_t> || is_same<T, uint16_t> || is_same<T, uint32_t> || is_same<T, uint64_t>;
template <class T>
constexpr bool is_integer = is_signed_integer<T> || is_unsigned_integer<T>;

// ---- floats of 16 bits: storage, computed with as float ----

#if !defined(CRESSET_EMULATED) && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800)
CRESSET_INLINE uint16_t float_to_half(float f) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(f));
  return bits;
}
CRESSET_INLINE float half_to_float(uint16_t bits) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits));
  return f;
}
CRESSET_INLINE uint16_t float_to_bfloat16(float f) {
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(f));
  return bits;
}
#else  // the same in whole numbers, as in native/base/half.h
CRESSET_INLINE uint16_t float_to_half(float f) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, f), sign = bits & 0x80000000u, magnitude = bits ^ sign;
  const uint32_t denormal = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t finite = magnitude < 0x38800000u ? denormal : normal;
  return static_cast<uint16_t>((magnitude >= 0x47800000u ? special : finite) | (sign >> 16));
}
CRESSET_INLINE float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, rest = static_cast<uint32_t>(bits & 0x7fffu) << 13;
  const uint32_t scaled = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, rest) * 5.192296858534828e33f);
  return __builtin_bit_cast(float, (rest >= (0x7c00u << 13) ? scaled | 0x7f800000u : scaled) | sign);
}
CRESSET_INLINE uint16_t float_to_bfloat16(float f) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, f);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}
#endif

struct half {
  uint16_t bits;
  half() = default;
  CRESSET_INLINE explicit half(float f) : bits(float_to_half(f)) {}
  CRESSET_INLINE explicit operator float() const { return half_to_float(bits); }
};
struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  CRESSET_INLINE explicit bfloat16(float f) : bits(float_to_bfloat16(f)) {}
  CRESSET_INLINE explicit operator float() const {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
};
template <class T>
constexpr bool is_half = is_same<T, half> || is_same<T, bfloat16>;

namespace math {
CRESSET_INLINE float abs(float x) { return ::fabsf(x); }
CRESSET_INLINE double abs(double x) { return ::fabs(x); }
}  // namespace math

}  // namespace cresset

#ifndef PLAIN_TYPES
#include "complex_arithmetic.h"  // Complex<T>, complex64, complex128
#include "float8.cuh"            // the floats of 8 bits
#else  // of what a kernel does not use the names are enough: reading the rest would take a tenth of its compilation
namespace cresset {
template <class T>
struct Complex;
using complex64 = Complex<float>;
using complex128 = Complex<double>;
template <class Format>
struct Float8;
template <int kExponent, int kMantissa, int kBias, bool kHasInf, bool kUnsignedZero>
struct Float8Format;
struct Float8Exponent;
}  // namespace cresset
#endif

namespace cresset {

using complex32 = Complex<half>;  // storage only: computed with as complex64
template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<Complex<T>> = true;

// ---- the dtypes, by their tags in native/base/dtype.h ----

using dtype_u8 = uint8_t;
using dtype_i8 = int8_t;
using dtype_i16 = int16_t;
using dtype_i32 = int32_t;
using dtype_i64 = int64_t;
using dtype_f16 = half;
using dtype_f32 = float;
using dtype_f64 = double;
using dtype_c32 = complex32;
using dtype_c64 = complex64;
using dtype_c128 = complex128;
using dtype_b8 = bool;
using dtype_bf16 = bfloat16;
using dtype_u16 = uint16_t;
using dtype_u32 = uint32_t;
using dtype_u64 = uint64_t;
using dtype_f8e5m2 = Float8<Float8Format<5, 2, 15, true, false>>;
using dtype_f8e4m3fn = Float8<Float8Format<4, 3, 7, false, false>>;
using dtype_f8e5m2fnuz = Float8<Float8Format<5, 2, 16, false, true>>;
using dtype_f8e4m3fnuz = Float8<Float8Format<4, 3, 8, false, true>>;
using dtype_f8e8m0fnu = Float8<Float8Exponent>;

// Types that are storage only, and are read and written as float.
template <class T>
constexpr bool is_small = is_half<T>;
template <class Format>
constexpr bool is_small<Float8<Format>> = true;

// What a kernel computes and accumulates in: float for what is narrower, itself otherwise.
template <class T>
struct Opmath {
  using type = T;
};
template <>
struct Opmath<half> {
  using type = float;
};
template <>
struct Opmath<bfloat16> {
  using type = float;
};
template <class Format>
struct Opmath<Float8<Format>> {
  using type = float;
};
template <>
struct Opmath<complex32> {
  using type = complex64;
};
template <class T>
using opmath = typename Opmath<T>::type;

// The type of the parts of a complex number; a real number is its own part.
template <class T>
struct Part {
  using type = T;
};
template <class T>
struct Part<Complex<T>> {
  using type = T;
};
template <class T>
using part = typename Part<T>::type;

// ---- conversion ----

// Towards zero. What does not fit gives the lowest number, as on x86-64: a card would give the nearest.
template <class T>
CRESSET_INLINE int64_t to_int64(T v) {
  return v >= T(-9223372036854775808.0) && v < T(9223372036854775808.0) ? static_cast<int64_t>(v) : INT64_MIN;
}
template <class T>
CRESSET_INLINE int32_t to_int32(T v) {
  return v > T(-2147483649.0) && v < T(2147483648.0) ? static_cast<int32_t>(v) : -2147483647 - 1;
}

// Between any two dtypes, as native/tensor/convert.h does: floats are cut towards zero, narrow integers keep the low
// bits, complex numbers drop their imaginary part, bool is "not zero".
template <class To, class From>
CRESSET_INLINE To convert(From v) {
  if constexpr (is_same<To, From>) {
    return v;
  } else if constexpr (is_small<From>) {
    return convert<To>(static_cast<float>(v));
  } else if constexpr (is_complex<From>) {
    if constexpr (is_complex<To>)
      return To(convert<part<To>>(v.re), convert<part<To>>(v.im));
    else if constexpr (is_same<To, bool>)
      return convert<bool>(v.re) || convert<bool>(v.im);
    else
      return convert<To>(v.re);
  } else if constexpr (is_complex<To>) {
    return To(convert<part<To>>(v), convert<part<To>>(0.0f));
  } else if constexpr (is_small<To>) {
    return To(static_cast<float>(v));
  } else if constexpr (is_same<To, bool>) {
    return v != From(0);
  } else if constexpr (is_float<From> && is_same<To, int32_t>) {
    return to_int32(v);
  } else if constexpr (is_float<From> && is_same<To, uint64_t>) {
    if (v < From(9223372036854775808.0)) return static_cast<uint64_t>(to_int64(v));
    return v < From(18446744073709551616.0) ? static_cast<uint64_t>(v) : 0;
  } else if constexpr (is_float<From> && is_integer<To>) {
    return static_cast<To>(to_int64(v));
  } else {
    return static_cast<To>(v);
  }
}

// ---- several elements at once: one load or store of up to 16 bytes ----

template <class T, int N>
struct alignas(sizeof(T) * N >= 16 ? 16 : sizeof(T) * N) Vector {
  T values[N];
  CRESSET_INLINE T& operator[](int i) { return values[i]; }
  CRESSET_INLINE const T& operator[](int i) const { return values[i]; }
};

// So many bytes as one access.
template <int N>
struct Words {
  struct alignas(N >= 16 ? 16 : N) type {
    uint32_t words[N / 4];
  };
};
template <>
struct Words<2> {
  using type = uint16_t;
};
template <>
struct Words<1> {
  using type = uint8_t;
};
template <int N, class T>
CRESSET_INLINE Vector<T, N> load_vector(const T* p) {
  using Word = typename Words<sizeof(T) * N>::type;
  return __builtin_bit_cast(Vector<T, N>, *reinterpret_cast<const Word*>(p));
}
template <class T, int N>
CRESSET_INLINE void store_vector(T* p, const Vector<T, N>& v) {
  using Word = typename Words<sizeof(T) * N>::type;
  *reinterpret_cast<Word*>(p) = __builtin_bit_cast(Word, v);
}

// How many elements of a type a thread loads at once.
template <class T>
constexpr int vector_length = 16 / sizeof(T);

}  // namespace cresset

using namespace cresset;
