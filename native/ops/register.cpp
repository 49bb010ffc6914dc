#include "ops/register.h"

#include <cstdlib>
#include <string_view>

namespace cresset {

const char* instruction_set() {
  static const char* level = [] {
    const char* wish = std::getenv("CRESSET_ISA");  // a lower level than the machine's, for tests
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const std::string_view w = wish ? wish : "";
    if (avx512 && w != "avx2" && w != "baseline") return "avx512";
    if (avx2 && w != "baseline") return "avx2";
    return "baseline";
  }();
  return level;
}

// x ** 2 is x * x; but bool counts as a whole number, and a whole number ** 2.0 is a fraction.
static const Operator* squared(const Call& c) {
  const Value &base = c.args[0], &exponent = c.args[1];
  if (base.kind != Kind::tensor || exponent.kind != Kind::scalar || exponent.scalar_.real != 2 || exponent.scalar_.kind == Scalar::Kind::complex) return nullptr;
  const Dtype d = base.tensor_->dtype;
  if (!is_differentiable(d) && (d == Dtype::b8 || !exponent.scalar_.is_integral())) return nullptr;
  static const Operator *square = Registry::instance().find("square"), *in_place = Registry::instance().find("square_");
  return c.op.inplace ? in_place : square;
}

void register_pointwise(Registry& r) {
  const std::string_view level = instruction_set();
  const PointwiseLoops* loops = level == "avx512" ? kPointwiseLoops_avx512 : level == "avx2" ? kPointwiseLoops_avx2 : kPointwiseLoops_baseline;
  for (int i = 0; i < kPointwiseCount; ++i) r.add_pointwise(kPointwiseDefinitions[i], loops[i]);
  r.find("pow")->instead = r.find("pow_")->instead = squared;
}

void register_operators() {
  Registry& r = Registry::instance();
  register_pointwise(r);
  register_rounding_division(r);
  register_views(r);
  register_copying(r);
  register_creation(r);
  register_random(r);
  register_reduction(r);
  register_scan(r);
  register_softmax(r);
  register_indexing(r);
  register_scattering(r);
  register_sorting(r);
  register_comparing(r);
  register_histograms(r);
  register_joining(r);
  register_rearranging(r);
  register_matmul(r);
  register_attention(r);
  register_convolution(r);
  register_pooling(r);
  register_fourier(r);
}

}  // namespace cresset
