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

// x ** 2 is x * x, and x ** 3, x ** 0.5 and a few more have operators of their own too; but bool counts as a whole
// number, and a whole number to a power that is written as a float is a fraction.
static const Operator* simple_power(const Call& c) {
  const Value &base = c.args[0], &exponent = c.args[1];
  if (base.kind != Kind::tensor || exponent.kind != Kind::scalar || exponent.scalar_.kind == Scalar::Kind::complex) return nullptr;
  const Dtype d = base.tensor_->dtype;
  if (!is_differentiable(d) && (d == Dtype::b8 || !exponent.scalar_.is_integral())) return nullptr;
  struct Power {
    double exponent;
    bool only_real;
    const Operator *plain, *in_place;
  };
  static const auto power = [](double value, bool only_real, const std::string& name) -> Power {
    return {value, only_real, Registry::instance().find(name), Registry::instance().find(name + "_")};
  };
  static const Power powers[] = {power(2, false, "square"), power(3, true, "cube"), power(0.5, true, "sqrt"),
                                 power(-0.5, true, "rsqrt"), power(-1, true, "reciprocal")};
  for (const Power& p : powers) {
    if (p.exponent != exponent.scalar_.real || (p.only_real && !is_floating(d))) continue;
    return c.op.inplace ? p.in_place : p.plain;
  }
  return nullptr;
}

// Asked before the call, which it leaves as it is.
static const Operator* refuse_zero_alpha(const Call& c) {
  check(c.args[1].scalar_.real != 0, c.op.name(), ": ZeroDivisionError: alpha cannot be 0 for CELU");
  return nullptr;
}

void register_pointwise(Registry& r) {
  const std::string_view level = instruction_set();
  const PointwiseLoops* loops = level == "avx512" ? kPointwiseLoops_avx512 : level == "avx2" ? kPointwiseLoops_avx2 : kPointwiseLoops_baseline;
  for (int i = 0; i < kPointwiseCount; ++i) r.add_pointwise(kPointwiseDefinitions[i], loops[i]);
  r.find("pow")->instead = r.find("pow_")->instead = simple_power;
  r.find("celu")->instead = r.find("celu_")->instead = refuse_zero_alpha;
}

void register_operators() {
  Registry& r = Registry::instance();
  register_pointwise(r);
  register_arithmetic(r);
  register_view(r);
  register_copy(r);
  register_creation(r);
  register_random(r);
  register_reduction(r);
  register_scan(r);
  register_softmax(r);
  register_loss(r);
  register_indexing(r);
  register_scatter(r);
  register_sorting(r);
  register_compare(r);
  register_histogram(r);
  register_join(r);
  register_rearrange(r);
  register_matmul(r);
  register_older_forms(r);
  register_matmul_integer(r);
  register_matmul_scaled(r);
  register_attention(r);
  register_recurrence(r);
  register_convolution(r);
  register_pooling(r);
  register_fourier(r);
  register_sparse(r);
  register_quantize(r);
  register_resampling(r);
}

}  // namespace cresset
