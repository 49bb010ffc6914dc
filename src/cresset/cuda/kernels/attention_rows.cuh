// What is kept of a row of attention, between the two ways to keep it: the greatest score m with 1 / l, where l is the
// sum of exp(score - m), and m + log l. JOIN: 1 from the pair to the logarithm, 0 back, with 1 for 1 / l. A row that
// sees nobody has the pair of infinity and 0.
#include "types.cuh"

extern "C" __global__ void __launch_bounds__(256) attention_rows(float* pairs, float* logarithms, int64_t count) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= count) return;
#if JOIN
  logarithms[at] = pairs[2 * at] - logf(pairs[2 * at + 1]);
#else
  pairs[2 * at] = logarithms[at], pairs[2 * at + 1] = 1.0f;
#endif
}
