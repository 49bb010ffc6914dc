// What is kept of a row of attention, between the two ways to keep it: the greatest score m with 1 / l, where l is the
// sum of exp(score - m), and m + log l. JOIN: 1 from the pair to the logarithm, 0 back, with 1 for 1 / l. A row that
// sees nobody has the pair of infinity and 0, and zeros as output; with MASK, of numbers of dtype T, such rows are
// looked for among those whose logarithm is no number. Also masks of bools as masks of numbers.
#define CAUSAL 0
#include "attention_problem.cuh"

extern "C" __global__ void __launch_bounds__(256)
    attention_rows(float* pairs, float* logarithms, int64_t count, const Problem p) {
  after_earlier_work();
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= count) return;
#if JOIN
  logarithms[at] = pairs[2 * at] - logf(pairs[2 * at + 1]);
#else
  const float logarithm = logarithms[at];
  pairs[2 * at] = logarithm, pairs[2 * at + 1] = 1.0f;
#if MASK
  if (fabsf(logarithm) < INFINITY) return;
  const int query = static_cast<int>(at % p.queries), head = static_cast<int>(at / p.queries % p.heads),
            batch = static_cast<int>(at / p.queries / p.heads);
  const T* mask = reinterpret_cast<const T*>(p.mask.data) + batch * p.mask.batch + head * p.mask.head +
                  static_cast<int64_t>(query) * p.mask.row;
  for (int k = 0; k < p.keys; ++k)
    if (!(static_cast<float>(mask[k]) == -INFINITY)) return;
  pairs[2 * at] = INFINITY, pairs[2 * at + 1] = 0.0f;
  T* output = matrix_of<T>(p.output, batch, head) + query * p.output.row;
  for (int d = 0; d < p.value_width; ++d) output[d] = T(0.0f);
#endif
#endif
}

extern "C" __global__ void __launch_bounds__(256) added_mask(const bool* bools, T* numbers, int64_t count) {
  after_earlier_work();
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < count) numbers[at] = T(bools[at] ? 0.0f : -INFINITY);
}
