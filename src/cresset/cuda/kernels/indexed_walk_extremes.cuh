// The largest or smallest of what an index sends to each element of a target: scatter_reduce, index_reduce.
//
// It does not depend on the order, so that atomics find it, among keys that keep the order of floats (HOW 2, 3 as in
// indexed_walk.cuh). STEP 0 gives each element of the target its key, in shared memory first where there is room for
// all; 0 stands for none, which no number has. STEP 1 puts the elements of the keys there.
#pragma once
#include "indexed_walk.cuh"
#include "ordered_keys.cuh"

constexpr int kFewKeys = 8192;  // as in native/cuda/indexed_walk.cpp

#if STEP == 0
extern "C" __global__ void __launch_bounds__(256) extremes(const Walk w, uint32_t* keys, int64_t span) {
  after_earlier_work();
  __shared__ uint32_t few[kFewKeys];
  const bool shared = span <= kFewKeys;
  if (shared) {
    for (int64_t k = threadIdx.x; k < span; k += 256) few[k] = 0;
    __syncthreads();
  }
  constexpr int kUnroll = 4;
  for (int64_t begin = static_cast<int64_t>(blockIdx.x) * (256 * kUnroll); begin < w.count;
       begin += static_cast<int64_t>(gridDim.x) * (256 * kUnroll)) {
    Offsets at[kUnroll];
    int64_t value[kUnroll];
    T source[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t i = begin + u * 256 + threadIdx.x;
      if (i >= w.count) continue;
      at[u] = offsets_at(w, i);
      value[u] = index_at(w, at[u].index);
      source[u] = reinterpret_cast<const T*>(w.plain)[at[u].plain];
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (begin + u * 256 + threadIdx.x >= w.count) continue;
      const int64_t place = place_of(w, value[u], at[u].index);
      if (place < 0) continue;
      const float number = static_cast<float>(source[u]);
      const uint32_t key = number != number ? all_ones<float> : key_of(number, HOW == 3);
      uint32_t* const to = (shared ? few : keys) + (at[u].indexed + place * w.scale);
      if (*const_cast<volatile uint32_t*>(to) < key) atomicMax(to, key);
    }
  }
  if (!shared) return;
  __syncthreads();
  for (int64_t k = threadIdx.x; k < span; k += 256)
    if (few[k]) atomicMax(keys + k, few[k]);
}
#else
extern "C" __global__ void __launch_bounds__(256) extremes(T* target, const uint32_t* keys, int64_t span) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= span || keys[i] == 0) return;
  const float found = keys[i] == all_ones<float> ? NAN : element_of<float>(keys[i], HOW == 3);
  target[i] = convert<T>(combined<float>(static_cast<float>(target[i]), found));
}
#endif
