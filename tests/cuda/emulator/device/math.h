// CUDA's mathematical functions that the host's C library has too, for float and double under one name as in CUDA.
#pragma once

#define EMULATED_MATH_1(name)               \
  extern "C" double name(double) noexcept;  \
  extern "C" float name##f(float) noexcept; \
  inline float name(float x) { return name##f(x); }
#define EMULATED_MATH_2(name)                                          \
  extern "C" double name(double, double) noexcept;                     \
  extern "C" float name##f(float, float) noexcept;                     \
  inline float name(float x, float y) { return name##f(x, y); }        \
  inline double name(float x, double y) { return name(double(x), y); } \
  inline double name(double x, float y) { return name(x, double(y)); }
EMULATED_MATH_1(acos)
EMULATED_MATH_1(acosh)
EMULATED_MATH_1(asin)
EMULATED_MATH_1(asinh)
EMULATED_MATH_1(atan)
EMULATED_MATH_1(atanh)
EMULATED_MATH_1(cbrt)
EMULATED_MATH_1(ceil)
EMULATED_MATH_1(cos)
EMULATED_MATH_1(cosh)
EMULATED_MATH_1(erf)
EMULATED_MATH_1(erfc)
EMULATED_MATH_1(exp)
EMULATED_MATH_1(exp10)
EMULATED_MATH_1(exp2)
EMULATED_MATH_1(expm1)
EMULATED_MATH_1(fabs)
EMULATED_MATH_1(floor)
EMULATED_MATH_1(lgamma)
EMULATED_MATH_1(log)
EMULATED_MATH_1(log10)
EMULATED_MATH_1(log1p)
EMULATED_MATH_1(log2)
EMULATED_MATH_1(logb)
EMULATED_MATH_1(nearbyint)
EMULATED_MATH_1(rint)
EMULATED_MATH_1(round)
EMULATED_MATH_1(sin)
EMULATED_MATH_1(sinh)
EMULATED_MATH_1(sqrt)
EMULATED_MATH_1(tan)
EMULATED_MATH_1(tanh)
EMULATED_MATH_1(tgamma)
EMULATED_MATH_1(trunc)
EMULATED_MATH_1(j0)
EMULATED_MATH_1(j1)
EMULATED_MATH_1(y0)
EMULATED_MATH_1(y1)
EMULATED_MATH_2(atan2)
EMULATED_MATH_2(copysign)
EMULATED_MATH_2(fdim)
EMULATED_MATH_2(fmax)
EMULATED_MATH_2(fmin)
EMULATED_MATH_2(fmod)
EMULATED_MATH_2(hypot)
EMULATED_MATH_2(nextafter)
EMULATED_MATH_2(pow)
EMULATED_MATH_2(remainder)
#undef EMULATED_MATH_1
#undef EMULATED_MATH_2

#define EMULATED_MATH(result, name, parameters, floats, float_result, arguments) \
  extern "C" result name parameters noexcept;                                    \
  extern "C" float_result name##f floats noexcept;                               \
  inline float_result name floats { return name##f arguments; }
EMULATED_MATH(double, fma, (double x, double y, double z), (float x, float y, float z), float, (x, y, z))
EMULATED_MATH(double, frexp, (double x, int* exponent), (float x, int* exponent), float, (x, exponent))
EMULATED_MATH(double, ldexp, (double x, int exponent), (float x, int exponent), float, (x, exponent))
EMULATED_MATH(double, scalbn, (double x, int exponent), (float x, int exponent), float, (x, exponent))
EMULATED_MATH(double, modf, (double x, double* whole), (float x, float* whole), float, (x, whole))
EMULATED_MATH(double, remquo, (double x, double y, int* quotient), (float x, float y, int* quotient), float,
              (x, y, quotient))
EMULATED_MATH(void, sincos, (double x, double* sine, double* cosine), (float x, float* sine, float* cosine), void,
              (x, sine, cosine))
EMULATED_MATH(double, jn, (int n, double x), (int n, float x), float, (n, x))
EMULATED_MATH(double, yn, (int n, double x), (int n, float x), float, (n, x))
EMULATED_MATH(int, ilogb, (double x), (float x), int, (x))
EMULATED_MATH(long, lrint, (double x), (float x), long, (x))
EMULATED_MATH(long long, llrint, (double x), (float x), long long, (x))
EMULATED_MATH(long, lround, (double x), (float x), long, (x))
EMULATED_MATH(long long, llround, (double x), (float x), long long, (x))
#undef EMULATED_MATH

#define EMULATED_QUESTIONS(T)                                           \
  inline constexpr bool isnan(T x) { return __builtin_isnan(x); }       \
  inline constexpr bool isinf(T x) { return __builtin_isinf(x); }       \
  inline constexpr bool isfinite(T x) { return __builtin_isfinite(x); } \
  inline constexpr bool signbit(T x) { return __builtin_signbit(x); }   \
  inline T abs(T x) { return fabs(x); }                                 \
  inline T max(T x, T y) { return fmax(x, y); }                         \
  inline T min(T x, T y) { return fmin(x, y); }
EMULATED_QUESTIONS(float)
EMULATED_QUESTIONS(double)
#undef EMULATED_QUESTIONS
inline double max(float x, double y) { return fmax(x, y); }
inline double max(double x, float y) { return fmax(x, y); }
inline double min(float x, double y) { return fmin(x, y); }
inline double min(double x, float y) { return fmin(x, y); }

#define EMULATED_EXTREMES(T)                                 \
  inline constexpr T max(T x, T y) { return x > y ? x : y; } \
  inline constexpr T min(T x, T y) { return x < y ? x : y; }
EMULATED_EXTREMES(int)
EMULATED_EXTREMES(unsigned)
EMULATED_EXTREMES(long)
EMULATED_EXTREMES(unsigned long)
EMULATED_EXTREMES(long long)
EMULATED_EXTREMES(unsigned long long)
#undef EMULATED_EXTREMES
inline unsigned umax(unsigned x, unsigned y) { return max(x, y); }
inline unsigned umin(unsigned x, unsigned y) { return min(x, y); }
inline long long llmax(long long x, long long y) { return max(x, y); }
inline long long llmin(long long x, long long y) { return min(x, y); }
inline constexpr unsigned max(int x, unsigned y) { return max(unsigned(x), y); }
inline constexpr unsigned max(unsigned x, int y) { return max(x, unsigned(y)); }
inline constexpr unsigned min(int x, unsigned y) { return min(unsigned(x), y); }
inline constexpr unsigned min(unsigned x, int y) { return min(x, unsigned(y)); }

extern "C" int abs(int) noexcept;
extern "C" long labs(long) noexcept;
extern "C" long long llabs(long long) noexcept;
inline long abs(long x) { return labs(x); }
inline long long abs(long long x) { return llabs(x); }
