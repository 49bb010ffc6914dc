// The norms of many tensors: a partial result of each block, in the same order every time, then one warp a tensor puts
// them together. `found` has room for the partial results of the blocks and `scale` for the norms of the targets. -D
// options besides those of many_table.cuh:
//   ELEMENT, BLOCK, VECTOR, UNROLL; ORDER 1, 2, or 0 for the largest magnitude
#pragma once

using T = ELEMENT;
using Real = opmath<T>;

__device__ __forceinline__ Real combined(Real a, Real b) {
#if ORDER
  return a + b;
#else
  return b > a || b != b ? b : a;
#endif
}
__device__ __forceinline__ Real measured(T value) {
  const Real x = convert<Real>(value);
#if ORDER == 2
  return x * x;
#else
  return fabs(x);
#endif
}
__device__ __forceinline__ Real combined_in_warp(Real value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = combined(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

extern "C" __global__ void __launch_bounds__(BLOCK) norm_parts(const Table table) {
  after_earlier_work();
  const Share share = find_share(table);
  const T* const p = reinterpret_cast<const T*>(table.tensors[0][share.target]) + share.begin;
  constexpr int kStep = BLOCK * VECTOR;
  Real sums[VECTOR] = {};
  int rest = 0;
  if (reinterpret_cast<uint64_t>(p) % (VECTOR * sizeof(T)) == 0) {
    rest = share.count - share.count % VECTOR;
    for (int at = static_cast<int>(threadIdx.x) * VECTOR; at < rest; at += kStep * UNROLL) {
      Vector<T, VECTOR> values[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        if (at + u * kStep < rest) values[u] = load_vector<VECTOR>(p + at + u * kStep);
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        if (at + u * kStep < rest) {
#pragma unroll
          for (int k = 0; k < VECTOR; ++k) sums[k] = combined(sums[k], measured(values[u].values[k]));
        }
    }
  }
#pragma unroll 1
  for (int i = rest + static_cast<int>(threadIdx.x); i < share.count; i += BLOCK)
    sums[0] = combined(sums[0], measured(p[i]));
#pragma unroll
  for (int k = 1; k < VECTOR; ++k) sums[0] = combined(sums[0], sums[k]);
  __shared__ Real of_warps[BLOCK / 32];
  const Real of_warp = combined_in_warp(sums[0]);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = of_warp;
  __syncthreads();
  if (threadIdx.x == 0) {
    Real all = of_warps[0];
#pragma unroll
    for (int w = 1; w < BLOCK / 32; ++w) all = combined(all, of_warps[w]);
    reinterpret_cast<Real*>(table.found)[blockIdx.x] = all;
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) norm_whole(const Table table) {
  after_earlier_work();
  const int target = static_cast<int>((blockIdx.x * BLOCK + threadIdx.x) / 32),
            lane = static_cast<int>(threadIdx.x % 32);
  if (target >= table.targets) return;
  const Real* const parts = reinterpret_cast<const Real*>(table.found) + table.first_blocks[target];
  const int64_t count = (table.counts[target] + table.chunk - 1) / table.chunk;
  Real sum = Real(0);
#pragma unroll 1
  for (int64_t i = lane; i < count; i += 32) sum = combined(sum, parts[i]);
  sum = combined_in_warp(sum);
#if ORDER == 2
  sum = sqrt(sum);
#endif
  if (lane == 0) reinterpret_cast<T*>(const_cast<float*>(table.scale))[target] = convert<T>(sum);
}
