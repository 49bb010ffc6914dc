// The error function, its complement and its inverse: a part of vector_math.h, which says how they are made.
#pragma once
#include <cmath>

#include "base/exponentials.h"

namespace cresset::math {

// ---- error function ----

// Two polynomials: one in x^2, which x is multiplied with, and one around 2.625 for larger x; from 3.9 on it is 1.
template <class Fma = DefaultFma>
CRESSET_INLINE float erf(float x) {
  const float slope = fused_polynomial<Fma>(x * x, 0.128379136f, -0.376124591f, 0.112820379f, -0.0268007461f,
                                            0.00510497065f, -0.000739815063f, 6.14403762e-05f);
  const float size = abs(x), near = Fma::fma(x, slope, x), t = (size > 3.9f ? 3.9f : size) - 2.625f;
  const float far =
      fused_polynomial<Fma>(t, 0.999794602f, 0.00114778965f, -0.00301282457f, 0.00489287917f, -0.00541625731f,
                            0.00420425553f, -0.00224193279f, 0.000711020431f, 2.85759215e-05f, -0.000184796183f,
                            7.80569826e-05f, 6.86025032e-06f, -8.50332071e-06f);
  return size < 1.25f ? near : copysign(far, x);
}
// In double precision the far part is 1 - exp(-x^2) times a polynomial in 1 / (x + 3).
CRESSET_INLINE double erf(double x) {
  const double square = x * x;
  const double slope =
      long_polynomial(square, 0.1283791670955126, -0.3761263890318375, 0.11283791670954879, -0.026866170645076792,
                      0.0052239776248180145, -0.000854832698083379, 0.0001205533111164271, -1.4925595266831182e-05,
                      1.6461000484121368e-06, -1.6350312701054695e-07, 1.4659775274047436e-08, -1.1372848856791674e-09,
                      5.957176147748911e-11);
  const double size = abs(x), near = x + x * slope, clamped = size > 6.0 ? 6.0 : size;
  const auto [n, r] = reduce_by_ln2(-(clamped * clamped));
  const double tail =
      long_polynomial(1.0 / (clamped + 3.0) - 0.2083, 0.27846367895094964, 2.8920337490781707, 14.002752715228628,
                      51.43972387022219, 136.82784431440146, 228.12451439453358, 92.6277833567867, -524.3216777699429,
                      -844.6078382384956, 1296.1192724544846, 3700.3598470754446, -5543.305480520321);
  const double far = 1.0 - (1.0 + (r + r * r * exp_tail(r))) * power_of_two(n) * tail;
  return size < 1.0 ? near : copysign(far, x);
}
CRESSET_INLINE double erfc(double x) { return ::erfc(x); }
// exp(-x^2) times a polynomial in t = (|x| - 4) / (|x| + 4); beyond 10.2 it is 0.
CRESSET_INLINE float erfc(float x) {
  const double size = abs(static_cast<double>(x)), clamped = size > 10.2 ? 10.2 : size;
  const double t = (clamped - 4.0) / (clamped + 4.0);
  const double scaled =
      polynomial(t, 1.23299511877966627, -0.139621131159537752, 0.0153796225373903134, 0.0680978471334100026,
                 -0.101037624201231637, 0.0937213617618043829, -0.0663561916368520445, 0.0372196279270543631,
                 -0.0160216296451157472, 0.00505246741591153544, -0.00112882848031453036, -0.000639705085724202135);
  const double tail = exp_short(-clamped * clamped) * scaled / (1.0 + 2.0 * clamped);
  const double result = x < 0.0f ? 2.0 - tail : tail;
  return x != x ? x : static_cast<float>(result);
}

// The y with erf(y) = x and erfc(y) = rest, for 0 <= x < 1; in single precision rest is 1 - x, and nothing more. y / x
// is smooth in w = -log(1 - x^2), from some w on in its root, and far out in the root's inverse: a polynomial for each
// range.
template <class Fma = DefaultFma>
CRESSET_INLINE float erf_inverse(float x, float) {
  const float w = -log<Fma>(Fma::fma(-x, x, 1.0f)), root = sqrt(w);
  const float near =
      fused_polynomial<Fma>(w, 0.0112269242f, 0.2320137128f, 0.01154916512f, -0.002335270595f, -0.0001265394743f,
                            4.404880433e-5f, 4.150663237e-6f, -2.008271339e-6f, 2.243043015e-7f, -8.93192597e-9f);
  const float far = fused_polynomial<Fma>(root - 3.168034f, 3.001526776f, 1.004297002f, 0.006405777927f,
                                          -0.004692371871f, 0.003267002292f, -0.002208947708f, 0.001223259198f,
                                          -0.0003477913992f, -0.0001368445975f, 0.0001115385808f);
  return w < 5.0f ? Fma::fma(x, near, x * 0.875f) : x * far;
}
CRESSET_INLINE double erf_inverse(double x, double rest) {
  const double w = -log(rest * (1.0 + x)), root = sqrt(w);
  const double near = polynomial(
      w - 3.125, 1.653654562683102712, 0.24015818242558970989, -0.0060336708714270112969, -0.00074070253416694010806,
      0.00018673420802124271572, -0.000013882523361276876215, -1.3654691796592068361e-6, 4.2347877672780652969e-7,
      -2.9070386660191429466e-8, -4.1126331042976139132e-9, 1.0512202440121784072e-9, -5.4154417754696635046e-11,
      -1.2977505202014966524e-11, 2.6335724924608484059e-12, -8.1065944564384951179e-14, -4.0554139746886005127e-14,
      6.5819553059292388607e-15, 2.1669946262835739661e-17, -1.2907023546130730434e-16, 1.1125794759379464874e-17,
      1.1027771591500032941e-18, -1.6787330615256771869e-19, -2.3623696985661074151e-22);
  const double middle = polynomial(
      root - 3.25, 3.0838856104922206763, 1.0052589676941592026, 0.0053709145535581983223, -0.0037512085075638537904,
      0.0024914420976198812115, -0.0016882755561681802984, 0.00095328935211181777561, -0.00035503751863069760148,
      0.000024031363245440548101, 0.000068284840522929233718, -0.000047319529183371890164, 0.000012475343474376930773,
      2.9273722115986925899e-6, -4.0139463981902918841e-6, 1.4958263152984917443e-6, 1.8323999881328577679e-8,
      -2.6860975725571460947e-7, 9.0719505710299225305e-8, -3.8310399460724113797e-10);
  const double far = polynomial(
      root - 5.25, 5.1024697665054209082, 1.0101951772794914775, -0.00027432268760327143398, -0.00015004600229566794193,
      0.000055148726559290672827, -0.000014023129204351455381, 3.1187982642378873338e-6, -6.4736662546997134255e-7,
      1.3092332777510273253e-7, -2.8103870094966798358e-8, 7.8050713022919072364e-9, -3.2853833069126299929e-9,
      1.6550597072127449044e-9, -7.4939221274698528233e-10, 3.4830438559381150586e-10, -1.8459162911451041869e-10,
      5.8364502519430347642e-11, 2.3412435619054888832e-12, -4.1687598427770060404e-12);
  const double farthest =
      root * polynomial(1.0 / root - 0.09598214285714285, 0.9897345263834600235, -0.16619562180436893331,
                        -0.36997048554861526242, 1.7083121298893531518, -4.5519389476006292375, 18.473684468767917113,
                        -98.100214427051238305, 586.51124117736317922, -3817.5971706563594273, 26503.606013764606528,
                        -192192.04929552746969, 1454207.1005581880214, -12185272.371734267186, 98577776.806831289506,
                        -383464112.15992013084, 2858687059.1801281148, -163821775652.3941153, 1479574659241.3963534,
                        15750893819031.495605, -147295012908350.59243, -2005663666691714.7727, 18390243684238039.459);
  return x * (w < 6.25 ? near : root < 4.0 ? middle : root < 6.45 ? far : farthest);
}

}  // namespace cresset::math
