// CUDA's mathematical functions that the host's C library lacks. Written plainly in double: right to a few units in the
// last place.
#pragma once

namespace emulated {
inline constexpr double pi = 3.14159265358979323846;

// sin(pi x) and cos(pi x), exact where x is a multiple of 1/2: the argument is brought into one turn first.
inline double sine_of_turns(double x) {
  const double r = remainder(x, 2.0);
  if (r == 0 || r == 1 || r == -1) return copysign(0.0, x);
  return fabs(r) <= 0.5 ? sin(pi * r) : copysign(sin(pi * (1 - fabs(r))), r);
}
inline double cosine_of_turns(double x) {
  const double r = fabs(remainder(x, 2.0));
  if (r == 0.5) return 0;
  return r < 0.25 ? cos(pi * r) : r <= 0.75 ? sin(pi * (0.5 - r)) : -cos(pi * (1 - r));
}

// The x with erf(x) = y: a first guess of Winitzki's, then Halley's steps.
inline double inverse_erf(double y) {
  if (!(fabs(y) < 1)) return fabs(y) == 1 ? copysign(__builtin_inf(), y) : __builtin_nan("");
  if (y == 0) return y;
  const double a = 0.147, l = log1p(-y * y), t = 2 / (pi * a) + l / 2;
  double x = copysign(sqrt(sqrt(t * t - l / a) - t), y);
  for (int step = 0; step < 4; ++step) {
    const double error =
        (fabs(y) < 0.5 ? erf(x) - y : copysign((1 - fabs(y)) - erfc(fabs(x)), y)) / (2 / sqrt(pi) * exp(-x * x));
    x -= error / (1 + x * error);
  }
  return x;
}
// The x with erfc(x) = y; for a small y by Newton's steps on log(erfc).
inline double inverse_erfc(double y) {
  if (!(y >= 0 && y <= 2)) return __builtin_nan("");
  if (y == 0 || y == 2) return y == 0 ? __builtin_inf() : -__builtin_inf();
  if (y > 1) return -inverse_erfc(2 - y);
  if (y > 0.5) return inverse_erf(1 - y);
  double x = sqrt(-log(y));
  for (int step = 0; step < 30; ++step) {
    const double value = erfc(x), move = (log(value) - log(y)) * value / (2 / sqrt(pi) * exp(-x * x));
    x += move;
    if (fabs(move) < 1e-16 * x) break;
  }
  return x;
}
// exp(x^2) erfc(x), which stays finite where exp(x^2) does not: the continued fraction from x = 5 on.
inline double scaled_erfc(double x) {
  if (x < 5) return exp(x * x) * erfc(x);
  double fraction = x;
  for (int k = 60; k >= 1; --k) fraction = x + 0.5 * k / fraction;
  return 1 / (sqrt(pi) * fraction);
}
// The modified Bessel functions I0 and I1 by their power series, whose terms are all of one sign.
inline double bessel_i(int order, double x) {
  const double q = x * x / 4;
  double term = order == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; fabs(term) > 1e-18 * fabs(sum) && k < 2000; ++k) sum += term *= q / (k * double(k + order));
  return sum;
}
}  // namespace emulated

#define EMULATED_SPECIAL(name, expression)            \
  inline double name(double x) { return expression; } \
  inline float name##f(float value) {                 \
    const double x = value;                           \
    return float(expression);                         \
  }                                                   \
  inline float name(float x) { return name##f(x); }
EMULATED_SPECIAL(rsqrt, 1 / sqrt(x))
EMULATED_SPECIAL(rcbrt, 1 / cbrt(x))
EMULATED_SPECIAL(sinpi, emulated::sine_of_turns(x))
EMULATED_SPECIAL(cospi, emulated::cosine_of_turns(x))
EMULATED_SPECIAL(erfinv, emulated::inverse_erf(x))
EMULATED_SPECIAL(erfcinv, emulated::inverse_erfc(x))
EMULATED_SPECIAL(erfcx, emulated::scaled_erfc(x))
EMULATED_SPECIAL(normcdf, erfc(-x* sqrt(0.5)) / 2)
EMULATED_SPECIAL(normcdfinv, -sqrt(2.0) * emulated::inverse_erfc(2 * x))
EMULATED_SPECIAL(cyl_bessel_i0, emulated::bessel_i(0, x))
EMULATED_SPECIAL(cyl_bessel_i1, emulated::bessel_i(1, x))
#undef EMULATED_SPECIAL

inline void sincospi(double x, double* sine, double* cosine) { *sine = sinpi(x), *cosine = cospi(x); }
inline void sincospif(float x, float* sine, float* cosine) { *sine = sinpif(x), *cosine = cospif(x); }
inline void sincospi(float x, float* sine, float* cosine) { sincospif(x, sine, cosine); }
inline double rhypot(double x, double y) { return 1 / hypot(x, y); }
inline float rhypotf(float x, float y) { return float(1 / hypot(double(x), double(y))); }
inline double norm3d(double x, double y, double z) { return hypot(hypot(x, y), z); }
inline float norm3df(float x, float y, float z) { return float(norm3d(x, y, z)); }

// The quick ones are not as quick here, and better.
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline void __sincosf(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
