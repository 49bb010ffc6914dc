// Products of matrices so small that starting is what takes the time: a block computes a tile of 16 x 16, four groups
// of its threads share k, and each thread has 2 x 2 sums. Sums have one order.
//
// -D options: T, A_ALONG_K, B_ALONG_K (whether neighbors in memory are neighbors along k), CHUNK (of k at a time).
#include "types.cuh"

using C = opmath<T>;
constexpr int kThreads = 256, kTile = 16, kGroups = 4, kStep = kTile + 2;

// As in native/cuda/matmul_small.cpp; matrices lie as those of MatrixProduct.
struct Product {
  const T *a, *b, *bias;
  T* d;
  int64_t a_step, b_step, d_step;
  int32_t m, n, k, lda, ldb, ldd;
  float alpha;
};

template <bool ALONG_K>
CRESSET_INLINE void load_tile(C (&to)[CHUNK][kStep], const T* from, int64_t ld, int lines, int k) {
  C loaded[CHUNK * kTile / kThreads];
#pragma unroll
  for (int u = 0; u < CHUNK * kTile / kThreads; ++u) {
    const int at = u * kThreads + static_cast<int>(threadIdx.x), line = ALONG_K ? at / CHUNK : at % kTile,
              place = ALONG_K ? at % CHUNK : at / kTile;
    loaded[u] =
        line < lines && place < k ? convert<C>(ALONG_K ? from[line * ld + place] : from[place * ld + line]) : C(0);
  }
#pragma unroll
  for (int u = 0; u < CHUNK * kTile / kThreads; ++u) {
    const int at = u * kThreads + static_cast<int>(threadIdx.x);
    to[ALONG_K ? at % CHUNK : at / kTile][ALONG_K ? at / CHUNK : at % kTile] = loaded[u];
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) multiply_small(const Product p) {
  after_earlier_work();
  __shared__ C a[CHUNK][kStep], b[CHUNK][kStep];
  __shared__ C sums[kGroups - 1][4][kThreads / kGroups];
  const int group = static_cast<int>(threadIdx.x) / (kThreads / kGroups),
            place = static_cast<int>(threadIdx.x) % (kThreads / kGroups), i = place % 8 * 2, j = place / 8 * 2;
  const int first_i = static_cast<int>(blockIdx.x) * kTile, first_j = static_cast<int>(blockIdx.y) * kTile;
  const T* const from_a = p.a + blockIdx.z * p.a_step + first_i * (A_ALONG_K ? static_cast<int64_t>(p.lda) : 1);
  const T* const from_b = p.b + blockIdx.z * p.b_step + first_j * (B_ALONG_K ? static_cast<int64_t>(p.ldb) : 1);
  C sum[2][2] = {};
#pragma unroll 1
  for (int base = 0; base < p.k; base += CHUNK) {
    if (base) __syncthreads();
    load_tile<A_ALONG_K>(a, from_a + base * (A_ALONG_K ? 1 : static_cast<int64_t>(p.lda)), p.lda, p.m - first_i,
                         p.k - base);
    load_tile<B_ALONG_K>(b, from_b + base * (B_ALONG_K ? 1 : static_cast<int64_t>(p.ldb)), p.ldb, p.n - first_j,
                         p.k - base);
    __syncthreads();
#pragma unroll 8
    for (int k = group * (CHUNK / kGroups); k < (group + 1) * (CHUNK / kGroups); ++k) {
      const C x[2] = {a[k][i], a[k][i + 1]}, y[2] = {b[k][j], b[k][j + 1]};
#pragma unroll
      for (int c = 0; c < 4; ++c) sum[c / 2][c % 2] += x[c % 2] * y[c / 2];
    }
  }
#pragma unroll
  for (int c = 0; c < 4; ++c)
    if (group) sums[group - 1][c][place] = sum[c / 2][c % 2];
  __syncthreads();
  if (group) return;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const int row = first_i + i + c % 2, column = first_j + j + c / 2;
    if (row >= p.m || column >= p.n) continue;
    C all = sum[c / 2][c % 2];
#pragma unroll
    for (int g = 0; g < kGroups - 1; ++g) all += sums[g][c][place];
    all *= p.alpha;
    if (p.bias) all += convert<C>(p.bias[row]);
    p.d[blockIdx.z * p.d_step + static_cast<int64_t>(column) * p.ldd + row] = convert<T>(all);
  }
}
