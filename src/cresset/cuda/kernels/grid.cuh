// Images and volumes read at the places of a grid, and the gradients of both. READ, GRID_GRADIENT, KEYS, RUNS,
// INPUT_GRADIENT: which kernel is wanted. DIMS is 2 or 3; TAPS along each dimension 1 (nearest), 2 (linear), 4 (cubic).
//
// Many places read one element, so its gradient is a sum over them: they are sorted by what they read, and each element
// adds its own in their order. The same bits come out on every run.
#pragma once
#include "divider.cuh"
#include "grid_taps.h"

constexpr int kChannels = 8;  // of a thread
constexpr int kCorners = DIMS == 2 ? TAPS * TAPS : TAPS * TAPS * TAPS;
using A = opmath<T>;

// The same as in native/cuda/grid.cpp.
struct Sampled {
  int64_t samples, channels, places, elements;  // elements of a channel of the input
  int32_t sizes[3];                             // depth, height, width
  int32_t padding, align_corners, unused;
  int64_t sample_step, channel_step, steps[3];  // of the input
  Divider place_blocks, channel_groups;
};

struct Corners {
  GridTaps<A> taps[3];
};
__device__ __forceinline__ Corners corners_of(const Sampled& s, const T* grid, int64_t sample, int64_t place) {
  Corners c;
  const T* at = grid + (sample * s.places + place) * DIMS;
#pragma unroll
  for (int d = 0; d < DIMS; ++d)  // the grid counts from the last dimension
    c.taps[2 - d] = grid_taps<TAPS>(convert<A>(at[d]), s.sizes[2 - d], s.padding, s.align_corners != 0);
  if (DIMS == 2) c.taps[0].at[0] = 0, c.taps[0].weight[0] = 1, c.taps[0].slope[0] = 0;
  return c;
}
// f(number of the corner, z, y, x: which taps), for the corners that are inside.
template <class F>
__device__ __forceinline__ void each_corner(const Corners& c, F f) {
#pragma unroll
  for (int z = 0; z < (DIMS == 2 ? 1 : TAPS); ++z)
#pragma unroll
    for (int y = 0; y < TAPS; ++y)
#pragma unroll
      for (int x = 0; x < TAPS; ++x)
        if (c.taps[0].at[z] >= 0 && c.taps[1].at[y] >= 0 && c.taps[2].at[x] >= 0) f((z * TAPS + y) * TAPS + x, z, y, x);
}
__device__ __forceinline__ int64_t offset_of(const Sampled& s, const Corners& c, int z, int y, int x) {
  return c.taps[0].at[z] * s.steps[0] + c.taps[1].at[y] * s.steps[1] + c.taps[2].at[x] * s.steps[2];
}

#ifdef READ
// Many corners leave room for few channels at a time: with more registers there would be too few threads to wait for
// memory together.
constexpr int kResident = kCorners > 8 || sizeof(A) == 8 ? 2 : 4;  // blocks of a multiprocessor
extern "C" __global__ void __launch_bounds__(256, kResident)
    grid_read(const T* input, const T* grid, T* out, const Sampled s) {
  after_earlier_work();
  const uint32_t group = divided(blockIdx.x, s.place_blocks), sample = divided(group, s.channel_groups);
  const int64_t place = static_cast<int64_t>(blockIdx.x - group * s.place_blocks.divisor) * 256 + threadIdx.x,
                first = static_cast<int64_t>(group - sample * s.channel_groups.divisor) * kChannels;
  if (place >= s.places) return;
  const Corners c = corners_of(s, grid, sample, place);
  const T* from = input + sample * s.sample_step + first * s.channel_step;
  const int channels = s.channels - first < kChannels ? static_cast<int>(s.channels - first) : kChannels;
  // Corners that lie side by side are read one right after the other, channel by channel: they share what is cached.
  int64_t offsets[kCorners];
  A weights[kCorners];
  uint32_t inside = 0;
  each_corner(c, [&](int corner, int z, int y, int x) {
    inside |= 1u << corner;
    offsets[corner] = offset_of(s, c, z, y, x);
    weights[corner] = c.taps[0].weight[z] * c.taps[1].weight[y] * c.taps[2].weight[x];
  });
  T* to = out + (sample * s.channels + first) * s.places + place;
#pragma unroll(kCorners > 4 ? 2 : 4)
  for (int k = 0; k < channels; ++k) {
    A sum = 0;
#pragma unroll
    for (int corner = 0; corner < kCorners; ++corner)
      if (inside >> corner & 1) sum = sum + weights[corner] * convert<A>(from[offsets[corner]]);
    *to = convert<T>(sum);
    from += s.channel_step;
    to += s.places;
  }
}
#endif

#ifdef GRID_GRADIENT
// A thread has one place and goes over the channels.
extern "C" __global__ void __launch_bounds__(128)
    grid_gradient(const T* grad, const T* input, const T* grid, T* out, const Sampled s) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 128 + threadIdx.x;
  if (i >= s.samples * s.places) return;
  const int64_t sample = i / s.places, place = i - sample * s.places;
  const Corners c = corners_of(s, grid, sample, place);
  const T* from = input + sample * s.sample_step;
  const T* grads = grad + sample * s.channels * s.places + place;
  A dots[kCorners] = {};
#pragma unroll 2
  for (int64_t k = 0; k < s.channels; ++k) {
    const A g = convert<A>(grads[k * s.places]);
    each_corner(c, [&](int corner, int z, int y, int x) {
      dots[corner] = dots[corner] + g * convert<A>(from[offset_of(s, c, z, y, x)]);
    });
    from += s.channel_step;
  }
  A sum[3] = {};
  each_corner(c, [&](int corner, int z, int y, int x) {
    const A depth = c.taps[0].weight[z], height = c.taps[1].weight[y], width = c.taps[2].weight[x];
    sum[0] = sum[0] + dots[corner] * c.taps[0].slope[z] * height * width;
    sum[1] = sum[1] + dots[corner] * c.taps[1].slope[y] * depth * width;
    sum[2] = sum[2] + dots[corner] * c.taps[2].slope[x] * depth * height;
  });
#pragma unroll
  for (int d = 0; d < DIMS; ++d) out[i * DIMS + d] = convert<T>(sum[2 - d]);
}
#endif

#ifdef KEYS
// keys[place][corner]: which element, counted over all samples, a corner is; the number of all where it is outside.
extern "C" __global__ void __launch_bounds__(128)
    grid_keys(const T* grid, uint32_t* keys, A* weights, const Sampled s) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 128 + threadIdx.x;
  if (i >= s.samples * s.places) return;
  const int64_t sample = i / s.places;
  const Corners c = corners_of(s, grid, sample, i - sample * s.places);
  uint32_t key[kCorners];
  A weight[kCorners] = {};
#pragma unroll
  for (int k = 0; k < kCorners; ++k) key[k] = static_cast<uint32_t>(s.samples * s.elements);
  each_corner(c, [&](int corner, int z, int y, int x) {
    const int64_t element =
        (static_cast<int64_t>(c.taps[0].at[z]) * s.sizes[1] + c.taps[1].at[y]) * s.sizes[2] + c.taps[2].at[x];
    key[corner] = static_cast<uint32_t>(sample * s.elements + element);
    weight[corner] = c.taps[0].weight[z] * c.taps[1].weight[y] * c.taps[2].weight[x];
  });
#pragma unroll
  for (int k = 0; k < kCorners; ++k) keys[i * kCorners + k] = key[k], weights[i * kCorners + k] = weight[k];
}
#endif

#ifdef RUNS
// Where each element's corners begin and end among the sorted ones.
extern "C" __global__ void __launch_bounds__(256)
    grid_runs(const uint32_t* keys, int32_t* begins, int32_t* ends, int64_t n, uint32_t none) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n || keys[i] == none) return;
  if (i == 0 || keys[i - 1] != keys[i]) begins[keys[i]] = static_cast<int32_t>(i);
  if (i + 1 == n || keys[i + 1] != keys[i]) ends[keys[i]] = static_cast<int32_t>(i + 1);
}
#endif

#ifdef INPUT_GRADIENT
// A thread has one element of several channels. Here `place_blocks` are of elements.
extern "C" __global__ void __launch_bounds__(256)
    grid_input_gradient(const T* grad, const int32_t* begins, const int32_t* ends, const int32_t* positions,
                        const A* weights, T* out, const Sampled s) {
  after_earlier_work();
  const uint32_t group = divided(blockIdx.x, s.place_blocks), sample = divided(group, s.channel_groups);
  const int64_t element = static_cast<int64_t>(blockIdx.x - group * s.place_blocks.divisor) * 256 + threadIdx.x,
                first = static_cast<int64_t>(group - sample * s.channel_groups.divisor) * kChannels;
  if (element >= s.elements) return;
  const int channels = s.channels - first < kChannels ? static_cast<int>(s.channels - first) : kChannels;
  const T* from = grad + (sample * s.channels + first) * s.places - sample * s.places;
  const int64_t key = sample * s.elements + element;
  A sum[kChannels] = {};
  for (int32_t i = begins[key]; i < ends[key]; ++i) {
    const int32_t position = positions[i];
    const int64_t place = static_cast<int64_t>(position / kCorners);  // counted over all samples
    const A weight = weights[position];
    T v[kChannels];
#pragma unroll
    for (int k = 0; k < kChannels; ++k)
      if (k < channels) v[k] = from[k * s.places + place];
#pragma unroll
    for (int k = 0; k < kChannels; ++k)
      if (k < channels) sum[k] = sum[k] + weight * convert<A>(v[k]);
  }
#pragma unroll
  for (int k = 0; k < kChannels; ++k)
    if (k < channels) out[(sample * s.channels + first + k) * s.elements + element] = convert<T>(sum[k]);
}
#endif
