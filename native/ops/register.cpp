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
  if (register_pointwise) register_pointwise(r);
  if (register_rounding_division) register_rounding_division(r);
  if (register_views) register_views(r);
  if (register_copying) register_copying(r);
  if (register_creation) register_creation(r);
  if (register_random) register_random(r);
  if (register_reduction) register_reduction(r);
  if (register_scan) register_scan(r);
  if (register_softmax) register_softmax(r);
  if (register_indexing) register_indexing(r);
  if (register_scattering) register_scattering(r);
  if (register_sorting) register_sorting(r);
  if (register_comparing) register_comparing(r);
  if (register_histograms) register_histograms(r);
  if (register_joining) register_joining(r);
  if (register_rearranging) register_rearranging(r);
  if (register_matmul) register_matmul(r);
  if (register_convolution) register_convolution(r);
  if (register_pooling) register_pooling(r);
  register_fourier(r);
}

}  // namespace cresset
