#include "ops/gemm.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/instruction_set.h"
#include "base/parallel.h"
#include "ops/gemm_kernels.h"

namespace cresset {
namespace {

constexpr int64_t kWorkPerThread = 1 << 19;  // multiplications

template <class T>
Multiply<T> best_multiply() {
#if defined(__x86_64__) && defined(__GNUC__)
  const InstructionSet best = detect_instruction_set();
  if (best == InstructionSet::avx512) return multiply_avx512<T>();
  if (best == InstructionSet::avx2) return multiply_avx2<T>();
#endif
  return multiply_baseline<T>();
}

// c = beta start: what is left of a product over nothing.
template <class T>
void scale_start(const Product<T>& p) {
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) p.c[i * p.c_row + j] = p.start ? p.beta * p.start[i * p.start_row + j] : T(0);
}

class Scratch {
 public:
  ~Scratch() { std::free(memory_); }
  void* take(size_t bytes) {
    if (bytes > size_) {
      std::free(memory_);
      size_ = (bytes + 4095) / 4096 * 4096;
      memory_ = std::aligned_alloc(4096, size_);
      if (!memory_) {
        size_ = 0;
        fail(ErrorKind::out_of_memory, "out of memory: could not allocate ", bytes, " bytes for a matrix product");
      }
    }
    return memory_;
  }

 private:
  void* memory_ = nullptr;
  size_t size_ = 0;
};

}  // namespace

void* gemm_scratch(size_t bytes) {
  thread_local Scratch scratch;
  return scratch.take(bytes);
}

template <class T>
void multiply(const Product<T>& p) {
  static const Multiply<T> serially = best_multiply<T>();
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) return scale_start(p);
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  if (work < 2 * kWorkPerThread || omp_in_parallel()) return serially(p);
  // Threads share out a grid of blocks of c.
  const int64_t threads = std::min<int64_t>(thread_count(), static_cast<int64_t>(work / kWorkPerThread));
  int64_t across = 1;
  for (int64_t g = 1; g <= threads; ++g)
    if (threads % g == 0 && p.m / (threads / g) + p.n / g < p.m / (threads / across) + p.n / across) across = g;
  const int64_t down = threads / across;
  constexpr int64_t kUnit = 32;
  const int64_t row_units = (p.m + kUnit - 1) / kUnit, column_units = (p.n + kUnit - 1) / kUnit;
  parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t cell = begin; cell < end; ++cell) {
      const int64_t y = cell / across, x = cell % across;
      const int64_t i0 = row_units * y / down * kUnit, i1 = std::min(p.m, row_units * (y + 1) / down * kUnit);
      const int64_t j0 = column_units * x / across * kUnit, j1 = std::min(p.n, column_units * (x + 1) / across * kUnit);
      if (i0 >= i1 || j0 >= j1) continue;
      Product<T> part = p;
      part.m = i1 - i0;
      part.n = j1 - j0;
      part.a = p.a.from(i0);
      part.b = p.b.from(j0);
      part.c += i0 * p.c_row + j0;
      if (part.start) part.start += i0 * p.start_row + j0;
      serially(part);
    }
  });
}

template void multiply(const Product<float>&);
template void multiply(const Product<double>&);
template void multiply(const Product<uint32_t>&);
template void multiply(const Product<uint64_t>&);

}  // namespace cresset
