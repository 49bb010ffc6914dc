// Counting and moving bits, loads with cache hints, and the arithmetic and conversions that CUDA names by their
// rounding.
#pragma once

// In plain arithmetic: the compiler's own calls a library that programs are not linked with.
inline int __popcll(unsigned long long x) {
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  return int(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56);
}
inline int __popc(unsigned x) { return __popcll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned y = 0;
  for (int i = 0; i < 32; ++i) y |= ((x >> i) & 1) << (31 - i);
  return y;
}
inline unsigned long long __brevll(unsigned long long x) {
  return ((unsigned long long)__brev(unsigned(x)) << 32) | __brev(unsigned(x >> 32));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  const unsigned long long both = ((unsigned long long)y << 32) | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= unsigned((both >> (8 * ((s >> (4 * i)) & 7))) & 0xff) << (8 * i);
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((((unsigned long long)high << 32) | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned((((unsigned long long)high << 32) | low) >> (shift & 31));
}
inline int __mulhi(int x, int y) { return int(((long long)x * y) >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned(((unsigned long long)x * y) >> 32); }
inline long long __mul64hi(long long x, long long y) { return (long long)(((__int128)x * y) >> 64); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)(((unsigned __int128)x * y) >> 64);
}
inline int __mul24(int x, int y) { return int(((long long)(x << 8) >> 8) * ((long long)(y << 8) >> 8)); }
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += int((signed char)(a >> (8 * i))) * int((signed char)(b >> (8 * i)));
  return c;
}

template <class T>
inline T __ldg(const T* p) {
  return *p;
}
template <class T>
inline T __ldca(const T* p) {
  return *p;
}
template <class T>
inline T __ldcg(const T* p) {
  return *p;
}
template <class T>
inline T __ldcs(const T* p) {
  return *p;
}
template <class T>
inline T __ldcv(const T* p) {
  return *p;
}
template <class T>
inline T __ldlu(const T* p) {
  return *p;
}
template <class T>
inline void __stcg(T* p, T value) {
  *p = value;
}
template <class T>
inline void __stcs(T* p, T value) {
  *p = value;
}
template <class T>
inline void __stwb(T* p, T value) {
  *p = value;
}
template <class T>
inline void __stwt(T* p, T value) {
  *p = value;
}

inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return int(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(((long long)high << 32) | unsigned(low));
}

inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __drcp_rn(double x) { return 1 / x; }
inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }

namespace emulated {
// The device's conversion to an integer: what does not fit becomes the nearest that does, nan becomes zero (the sign
// bit alone in 64 bits).
template <class T, class F>
inline T saturate(F x) {
  constexpr bool is_signed = T(-1) < T(0);
  constexpr int bits = 8 * sizeof(T);
  const T largest = is_signed ? T(~(1ull << (bits - 1))) : T(~T(0)),
          smallest = is_signed ? T(1ull << (bits - 1)) : T(0);
  if (x != x) return bits == 64 ? T(1ull << 63) : T(0);
  if (x <= F(smallest)) return smallest;
  if (x >= F(largest)) return largest;
  return T(x);
}
}  // namespace emulated
#define EMULATED_CONVERSIONS(F, from, suffix)                                                                  \
  inline int __##from##2int_rn(F x) { return emulated::saturate<int>(__builtin_rint##suffix(x)); }             \
  inline int __##from##2int_rz(F x) { return emulated::saturate<int>(__builtin_trunc##suffix(x)); }            \
  inline int __##from##2int_rd(F x) { return emulated::saturate<int>(__builtin_floor##suffix(x)); }            \
  inline int __##from##2int_ru(F x) { return emulated::saturate<int>(__builtin_ceil##suffix(x)); }             \
  inline unsigned __##from##2uint_rn(F x) { return emulated::saturate<unsigned>(__builtin_rint##suffix(x)); }  \
  inline unsigned __##from##2uint_rz(F x) { return emulated::saturate<unsigned>(__builtin_trunc##suffix(x)); } \
  inline long long __##from##2ll_rn(F x) { return emulated::saturate<long long>(__builtin_rint##suffix(x)); }  \
  inline long long __##from##2ll_rz(F x) { return emulated::saturate<long long>(__builtin_trunc##suffix(x)); } \
  inline long long __##from##2ll_rd(F x) { return emulated::saturate<long long>(__builtin_floor##suffix(x)); } \
  inline unsigned long long __##from##2ull_rn(F x) {                                                           \
    return emulated::saturate<unsigned long long>(__builtin_rint##suffix(x));                                  \
  }                                                                                                            \
  inline unsigned long long __##from##2ull_rz(F x) {                                                           \
    return emulated::saturate<unsigned long long>(__builtin_trunc##suffix(x));                                 \
  }
EMULATED_CONVERSIONS(float, float, f)
EMULATED_CONVERSIONS(double, double, )
#undef EMULATED_CONVERSIONS
inline float __double2float_rn(double x) { return float(x); }
inline float __int2float_rn(int x) { return float(x); }
inline float __uint2float_rn(unsigned x) { return float(x); }
inline float __ll2float_rn(long long x) { return float(x); }
inline float __ull2float_rn(unsigned long long x) { return float(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return double(x); }
inline double __ull2double_rn(unsigned long long x) { return double(x); }
