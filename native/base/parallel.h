// Threads: one OpenMP pool, shared with oneDNN.
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>

#include <omp.h>

namespace cresset {

int thread_count();
void set_thread_count(int n);

// Runs f(begin, end) over [0, n) in chunks of at least `grain`. The pieces never overlap; what f computes for an index must not depend on the chunk it is in.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f) {
  const int64_t threads = std::min<int64_t>(thread_count(), grain > 0 ? n / grain : n);
  if (threads <= 1 || omp_in_parallel()) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  std::exception_ptr raised;
#pragma omp parallel num_threads(static_cast<int>(threads))
  {
    const int64_t k = omp_get_thread_num(), count = omp_get_num_threads();
    const int64_t begin = n * k / count, end = n * (k + 1) / count;
    try {
      if (begin < end) f(begin, end);
    } catch (...) {
#pragma omp critical(cresset_parallel_for)
      raised = std::current_exception();
    }
  }
  if (raised) std::rethrow_exception(raised);
}

// Below this many elements a second thread costs more than it brings.
inline constexpr int64_t kParallelGrain = 32768;

}  // namespace cresset
