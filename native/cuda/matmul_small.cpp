#include "cuda/matmul_small.h"

#include <algorithm>
#include <limits>

namespace cresset::cuda {
namespace {

// Measured on an H200, where cuBLASLt takes 4 to 9 us for what a multiprocessor does in 3: so many tiles that each has
// one of its own, and a k that one goes through in a few steps.
constexpr int64_t kMostTiles = 128, kMostK = 256, kTile = 16, kThreads = 256;

const KernelFamily kSmall("matmul_small.cuh", "multiply_small", {"T", "A_ALONG_K", "B_ALONG_K", "CHUNK"},
                          {"--fmad=true"});

// As in matmul_small.cuh.
struct Product {
  const void *a, *b, *bias;
  void* d;
  int64_t a_step, b_step, d_step;
  int32_t m, n, k, lda, ldb, ldd;
  float alpha;
};

}  // namespace

bool multiply_small(const Place& place, const MatrixProduct& p) {
  const int64_t rows = divide_up(p.m, kTile), columns = divide_up(p.n, kTile);
  if (p.dtype != Dtype::f32 || p.type_of_b() != Dtype::f32 || p.type_of_d() != Dtype::f32 || p.c.data ||
      p.beta.real != 0 || p.alpha.imag != 0 || p.k > kMostK || p.batch > kMostTiles || rows > kMostTiles ||
      columns > kMostTiles || rows * columns * p.batch > kMostTiles ||
      std::max({p.a.ld, p.b.ld, p.ldd}) > std::numeric_limits<int32_t>::max())
    return false;
  const Product small{p.a.data,
                      p.b.data,
                      p.bias,
                      p.d,
                      p.a.batch_step,
                      p.b.batch_step,
                      p.d_step,
                      static_cast<int32_t>(p.m),
                      static_cast<int32_t>(p.n),
                      static_cast<int32_t>(p.k),
                      static_cast<int32_t>(p.a.ld),
                      static_cast<int32_t>(p.b.ld),
                      static_cast<int32_t>(p.ldd),
                      static_cast<float>(p.alpha.real)};
  kSmall.launch(place, {p.dtype, p.a.transposed, !p.b.transposed, p.k <= 32 ? 32 : 128}, Grid(rows, columns, p.batch),
                kThreads, 0, small);
  return true;
}

}  // namespace cresset::cuda
