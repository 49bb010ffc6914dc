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

void register_pointwise(Registry& r) {
  const std::string_view level = instruction_set();
  const PointwiseLoops* loops = level == "avx512" ? kPointwiseLoops_avx512 : level == "avx2" ? kPointwiseLoops_avx2 : kPointwiseLoops_baseline;
  for (int i = 0; i < kPointwiseCount; ++i) r.add_pointwise(kPointwiseDefinitions[i], loops[i]);
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
  register_matmul(r);
  register_convolution(r);
  register_pooling(r);
}

}  // namespace cresset
