// How a random sample moves with the parameters of its distribution, when the randomness behind it is held fixed: dx/da
// = -(dF/da) / (dF/dx) for the distribution function F. In double; the caller rounds.
//
// CUDA kernels include this file too: cresset/cuda/kernels/random_sampling.cuh.
#pragma once
#ifndef CRESSET_KERNEL
#include <cmath>
#ifndef CRESSET_DEVICE
#define CRESSET_DEVICE
#endif
#endif

namespace cresset::samples {

#ifndef CRESSET_KERNEL  // CUDA has them for float and double under one name
using std::cbrt, std::fabs, std::log, std::sqrt;
#endif

// A value with its derivative by the one parameter of interest.
struct Dual {
  double value, slope = 0;
};
CRESSET_DEVICE inline Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
CRESSET_DEVICE inline Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
CRESSET_DEVICE inline Dual operator*(Dual a, Dual b) {
  return {a.value * b.value, a.slope * b.value + a.value * b.slope};
}
CRESSET_DEVICE inline Dual operator/(Dual a, Dual b) {
  return {a.value / b.value, (a.slope - a.value / b.value * b.slope) / b.value};
}

constexpr int kMostTerms = 20000;
constexpr double kPrecision = 1e-14;

// The logarithmic derivative of Γ: up by the recurrence to where Stirling's series is exact.
CRESSET_DEVICE inline double digamma_of_positive(double x) {
  double sum = 0;
  for (; x < 10; x += 1) sum -= 1 / x;
  const double r = 1 / (x * x);
  return sum + log(x) - 0.5 / x -
         r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132)))));
}

// A continued fraction b0 + a1/(b1 + a2/(b2 + ...)) by Lentz's method; terms(i, a, b) gives the i-th pair.
template <class Terms>
CRESSET_DEVICE inline Dual continued_fraction(Dual first, Terms&& terms) {
  constexpr double tiny = 1e-300;
  const auto away_from_zero = [](Dual d) { return fabs(d.value) < tiny ? Dual{tiny, d.slope} : d; };
  Dual f = away_from_zero(first), c = f, d{0};
  for (int i = 1; i < kMostTerms; ++i) {
    Dual a, b;
    terms(i, a, b);
    d = Dual{1} / away_from_zero(b + a * d);
    c = away_from_zero(b + a / c);
    const Dual factor = c * d;
    f = f * factor;
    if (fabs(factor.value - 1) < kPrecision && fabs(factor.slope) < kPrecision * (1 + fabs(f.slope))) break;
  }
  return f;
}

// I_x(p, q) is x^p (1 - x)^q / (p B(p, q)) times this.
CRESSET_DEVICE inline Dual beta_fraction(Dual p, Dual q, double x) {
  const Dual f = continued_fraction(Dual{1}, [&](int i, Dual& a, Dual& b) {
    const Dual m{static_cast<double>(i / 2)}, even = p + Dual{2 * m.value};
    a = i % 2 == 0 ? m * (q - m) * Dual{x} / ((even - Dual{1}) * even)
                   : Dual{-x} * (p + m) * (p + q + m) / (even * (even + Dual{1}));
    b = Dual{1};
  });
  return Dual{1} / f;
}

// d x / d shape of a sample x from Gamma(shape, 1).
CRESSET_DEVICE inline double gamma_sample_gradient(double shape, double x) {
  if (!(x > 0) || !(shape > 0)) return x != x || shape != shape ? x + shape : 0;
  if (shape > 1e5) {
    // Wilson and Hilferty: the cube root of x / shape is close to normal.
    const double u = cbrt(x / shape);
    const double z = 3 * sqrt(shape) * (u - 1 + 1 / (9 * shape));
    return x / shape + 3 * u * u * (1 / (9 * shape) - z / (6 * sqrt(shape)));
  }
  const double log_x = log(x);
  if (x < shape + 1) {
    // F = Σ t_n x^shape e^-x / Γ(shape) with t_n = x^n / (shape (shape + 1) ... (shape + n)), term by term.
    double term = 1 / shape, psi = digamma_of_positive(shape) + 1 / shape, sum = 0;
    for (int n = 1; n < kMostTerms; ++n) {
      const double part = term * (psi - log_x);
      sum += part;
      if (fabs(part) < kPrecision * fabs(sum) && n > x - shape) break;
      term *= x / (shape + n);
      psi += 1 / (shape + n);
    }
    return x * sum;
  }
  // 1 - F = x^shape e^-x / Γ(shape) / (x + 1 - shape - 1 (1 - shape) / (x + 3 - shape - ...)).
  const Dual s{shape, 1};
  const Dual below = continued_fraction(Dual{x + 1} - s, [&](int i, Dual& a, Dual& b) {
    a = Dual{-static_cast<double>(i)} * (Dual{static_cast<double>(i)} - s);
    b = Dual{x + 1 + 2.0 * i} - s;
  });
  const Dual upper = Dual{1} / below;
  return x * ((log_x - digamma_of_positive(shape)) * upper.value + upper.slope);
}

// For one component x of a sample from Dirichlet(..., concentration, ...) whose concentrations add up to `total`: d x /
// d concentration of Beta(concentration, total - concentration), divided by 1 - x. The Jacobian of the whole sample
// follows from these.
CRESSET_DEVICE inline double dirichlet_sample_gradient(double x, double concentration, double total) {
  const double other = total - concentration;
  if (x + concentration + total != x + concentration + total) return x + concentration + total;
  if (!(x > 0) || !(concentration > 0) || !(other > 0)) return 0;
  const double log_x = log(x), psi = digamma_of_positive(concentration) - digamma_of_positive(total);
  if (x * (total + 2) < concentration + 1) {
    const Dual f = beta_fraction({concentration, 1}, {other, 0}, x);
    return -x / concentration * ((log_x - 1 / concentration - psi) * f.value + f.slope);
  }
  const Dual f = beta_fraction({other, 0}, {concentration, 1}, 1 - x);
  return x / other * ((log_x - psi) * f.value + f.slope);
}

}  // namespace cresset::samples
