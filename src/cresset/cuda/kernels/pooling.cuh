// Pooling over windows of the last three dimensions: maxima and means, and their gradients. FORWARD_MAX, FORWARD_MEAN,
// WINDOW_MEAN, WHOLE_MEAN, GRADIENT_MAX, GRADIENT_MEAN: which kernel is wanted. A thread computes one element, or
// VECTOR channels that lie beside each other, or VECTOR neighbors of a line; gradients are gathered, window by window
// in order, so that the same bits come out on every run. The same struct as in native/cuda/pooling.cpp.
#pragma once
#include "divider.cuh"

struct Axis {
  int32_t in, out, kernel, stride, padding, dilation;
  Divider by_stride, by_in, by_out;  // the latter for windows that cover evenly; a divisor of 0 where sizes are large
};
struct Windows {
  int64_t count;  // elements to compute
  Axis axes[3];
  Divider channels, sizes[3];          // of what is computed
  int64_t strides[5];                  // of what is read: image, channel, and the three dimensions
  int64_t include_padding, divide_by;  // divide_by 0: by the size of the window
};

#if BIG
using Index = uint64_t;
#else
using Index = uint32_t;
#endif

struct Range {
  int32_t begin, end, length;  // length: with the padding that the window covers
};
__device__ __forceinline__ int64_t parted(int64_t n, int32_t by, const Divider& quick) {
  return quick.divisor ? static_cast<int64_t>(quick.quotient(static_cast<uint32_t>(n))) : n / by;
}
// The elements that window o sees: begin, begin + dilation, ... below end.
__device__ __forceinline__ Range window(const Axis& a, int32_t o) {
#if ADAPTIVE
  if (a.out == 1) return {0, a.in, a.in};
  const int32_t begin = static_cast<int32_t>(parted(static_cast<int64_t>(o) * a.in, a.out, a.by_out)),
                end = static_cast<int32_t>(parted(static_cast<int64_t>(o + 1) * a.in + a.out - 1, a.out, a.by_out));
  return {begin, end, end - begin};
#else
  const int32_t start = o * a.stride - a.padding, stop = start + a.dilation * (a.kernel - 1) + 1;
  const int32_t begin = start >= 0 ? start : start + (-start + a.dilation - 1) / a.dilation * a.dilation;
  return {begin, stop < a.in ? stop : a.in, (stop < a.in + a.padding ? stop : a.in + a.padding) - start};
#endif
}
// The windows that may see element i: from begin up to end.
__device__ __forceinline__ Range seen_by(const Axis& a, int32_t i) {
#if ADAPTIVE
  if (a.out == 1) return {0, 1, 0};
  const int32_t end = static_cast<int32_t>(parted(static_cast<int64_t>(i + 1) * a.out + a.in - 1, a.in, a.by_in));
  return {static_cast<int32_t>(parted(static_cast<int64_t>(i) * a.out, a.in, a.by_in)), end < a.out ? end : a.out, 0};
#else
  const int32_t reach = a.dilation * (a.kernel - 1) + 1, from = i + a.padding - reach + 1;
  const int32_t begin = from > 0
                            ? static_cast<int32_t>(a.by_stride.quotient(static_cast<uint32_t>(from + a.stride - 1)))
                            : 0,
                end = static_cast<int32_t>(a.by_stride.quotient(static_cast<uint32_t>(i + a.padding))) + 1;
  return {begin, end < a.out ? end : a.out, 0};
#endif
}
// Whether window o, one of those, does see it. Windows of means that slide have no gaps: all of them do.
__device__ __forceinline__ bool sees(const Axis& a, int32_t o, int32_t i) {
#if ADAPTIVE
  const Range r = window(a, o);
  return i >= r.begin && i < r.end;
#else
  return true;
#endif
}

struct Place {
  int64_t image, channel;
  int32_t at[3];
};
// Element i of what is computed, which lies densely: LAST with the channels innermost.
__device__ __forceinline__ Place place_of(const Windows& w, int64_t i) {
  Place p;
  Index rest = static_cast<Index>(i);
  const auto split = [&](const Divider& size) {
    const Index quotient = divided(rest, size);
    const int32_t at = static_cast<int32_t>(rest - quotient * size.divisor);
    rest = quotient;
    return at;
  };
#if LAST
  p.channel = split(w.channels);
#endif
  p.at[2] = split(w.sizes[2]);
  p.at[1] = split(w.sizes[1]);
  p.at[0] = split(w.sizes[0]);
#if !LAST
  p.channel = split(w.channels);
#endif
  p.image = static_cast<int64_t>(rest);
  return p;
}
__device__ __forceinline__ int64_t plane_of(const Windows& w, const Place& p) {
  return p.image * w.strides[0] + p.channel * w.strides[1];
}

template <class A>
__device__ __forceinline__ A shared_by(A sum, int64_t count) {
  if constexpr (is_complex<A>)
    return sum / static_cast<part<A>>(count);
  else
    return static_cast<A>(sum / static_cast<A>(count));
}

__device__ __forceinline__ int64_t divisor(const Windows& w, const Range* r) {
  if (w.divide_by) return w.divide_by;
  int64_t n = 1;
#pragma unroll
  for (int d = 0; d < 3; ++d) n *= w.include_padding ? r[d].length : r[d].end - r[d].begin;
  return n;
}

#if defined(FORWARD_MAX) || defined(FORWARD_MEAN)
// The windows of VECTOR results: of channels that lie beside each other it is one, neighbors of a line have their own
// along it. WIDE, where it is not 0, is how many elements a window that slides has along a line.
#if LAST
constexpr int kLine = 1;
#else
constexpr int kLine = VECTOR;
#endif
constexpr int kBeside = VECTOR / kLine;
struct Line {
  Range ranges[kLine];
  int32_t starts[kLine];  // of the windows themselves, which may lie in the padding
};
__device__ __forceinline__ Line line_of(const Windows& w, const Place& p) {
  Line line;
#pragma unroll
  for (int k = 0; k < kLine; ++k) {
    line.ranges[k] = window(w.axes[2], p.at[2] + k);
#if WIDE
    line.starts[k] = (p.at[2] + k) * w.axes[2].stride - w.axes[2].padding;
#endif
  }
  return line;
}
// Calls each(k, c, elements) for the elements of the line at `from` that window k sees, in their order.
template <class F>
__device__ __forceinline__ void along_line(const Windows& w, const Line& line, const T* from, F each) {
#if WIDE
  Vector<T, kBeside> loaded[kLine][WIDE];
#pragma unroll
  for (int k = 0; k < kLine; ++k)
#pragma unroll
    for (int j = 0; j < WIDE; ++j) {
      const int32_t c = line.starts[k] + j * w.axes[2].dilation;
      if (static_cast<uint32_t>(c) < static_cast<uint32_t>(w.axes[2].in))
        loaded[k][j] = load_vector<kBeside>(from + c * w.strides[4]);
    }
#pragma unroll
  for (int k = 0; k < kLine; ++k)
#pragma unroll
    for (int j = 0; j < WIDE; ++j) {
      const int32_t c = line.starts[k] + j * w.axes[2].dilation;
      if (static_cast<uint32_t>(c) < static_cast<uint32_t>(w.axes[2].in)) each(k, c, loaded[k][j]);
    }
#else
#pragma unroll
  for (int k = 0; k < kLine; ++k)
    for (int32_t c = line.ranges[k].begin; c < line.ranges[k].end; c += w.axes[2].dilation)
      each(k, c, load_vector<kBeside>(from + c * w.strides[4]));
#endif
}
#endif

#ifdef FORWARD_MAX
template <class A>
__device__ __forceinline__ A lowest() {
  if constexpr (is_float<A>)
    return static_cast<A>(-INFINITY);
  else if constexpr (is_signed_integer<A>)
    return static_cast<A>(static_cast<uint64_t>(1) << (8 * sizeof(A) - 1));
  else
    return A(0);
}
extern "C" __global__ void __launch_bounds__(256) max_pool(const T* x, T* y, int64_t* indices, const Windows w) {
  after_earlier_work();
  using A = opmath<T>;
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) * VECTOR;
  if (i >= w.count) return;
  const Place p = place_of(w, i);
  const T* plane = x + plane_of(w, p);
  const Range r[2] = {window(w.axes[0], p.at[0]), window(w.axes[1], p.at[1])};
  const Line line = line_of(w, p);
  A best[VECTOR];
  Vector<int64_t, VECTOR> index;
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) {
    best[k] = lowest<A>();
    index[k] =
        (static_cast<int64_t>(r[0].begin) * w.axes[1].in + r[1].begin) * w.axes[2].in + line.ranges[k / kBeside].begin;
  }
  for (int32_t a = r[0].begin; a < r[0].end; a += w.axes[0].dilation)
    for (int32_t b = r[1].begin; b < r[1].end; b += w.axes[1].dilation) {
      const int64_t first = (static_cast<int64_t>(a) * w.axes[1].in + b) * w.axes[2].in;
      along_line(w, line, plane + a * w.strides[2] + b * w.strides[3],
                 [&](int k, int32_t c, const Vector<T, kBeside>& elements) {
#pragma unroll
                   for (int j = 0; j < kBeside; ++j) {
                     const A v = convert<A>(elements[j]);
                     if (v > best[k + j] || v != v) {
                       best[k + j] = v;
                       index[k + j] = first + c;
                     }
                   }
                 });
    }
  Vector<T, VECTOR> out;
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) out[k] = convert<T>(best[k]);
  store_vector(y + i, out);
  store_vector(indices + i, index);
}
#endif

#ifdef FORWARD_MEAN
extern "C" __global__ void __launch_bounds__(256) mean_pool(const T* x, T* y, const Windows w) {
  after_earlier_work();
  using A = opmath<T>;
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) * VECTOR;
  if (i >= w.count) return;
  const Place p = place_of(w, i);
  const T* plane = x + plane_of(w, p);
  Range r[3] = {window(w.axes[0], p.at[0]), window(w.axes[1], p.at[1])};
  const Line line = line_of(w, p);
  A sum[VECTOR];
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) sum[k] = A(0);
  for (int32_t a = r[0].begin; a < r[0].end; ++a)
    for (int32_t b = r[1].begin; b < r[1].end; ++b)
      along_line(w, line, plane + a * w.strides[2] + b * w.strides[3],
                 [&](int k, int32_t, const Vector<T, kBeside>& elements) {
#pragma unroll
                   for (int j = 0; j < kBeside; ++j) sum[k + j] = sum[k + j] + convert<A>(elements[j]);
                 });
  Vector<T, VECTOR> out;
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) {
    r[2] = line.ranges[k / kBeside];
    out[k] = convert<T>(shared_by(sum[k], divisor(w, r)));
  }
  store_vector(y + i, out);
}
#endif

#ifdef WINDOW_MEAN
// The means of windows that have many elements: a warp has one, and goes along its lines, over several of short ones at
// a time.
extern "C" __global__ void __launch_bounds__(256) window_means(const T* x, T* y, const Windows w) {
  after_earlier_work();
  using A = opmath<T>;
  const int lane = threadIdx.x % 32;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
  if (i >= w.count) return;
  const Place p = place_of(w, i);
  const T* plane = x + plane_of(w, p);
  const Range r[3] = {window(w.axes[0], p.at[0]), window(w.axes[1], p.at[1]), window(w.axes[2], p.at[2])};
  const int32_t width = r[2].end - r[2].begin;
  int across = 1;
  while (across < 32 && across < width) across *= 2;
  const int32_t lines = 32 / across, first_line = lane / across, first = lane % across;
  const int64_t step = lines * w.strides[3];
  A sum = A(0);
  for (int32_t a = r[0].begin; a < r[0].end; ++a)
    for (int32_t c = r[2].begin + first; c < r[2].end; c += across) {
      const T* at = plane + a * w.strides[2] + (r[1].begin + first_line) * w.strides[3] + c * w.strides[4];
#pragma unroll 8
      for (int32_t b = r[1].begin + first_line; b < r[1].end; b += lines, at += step) sum = sum + convert<A>(*at);
    }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum = sum + __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) y[i] = convert<T>(shared_by(sum, divisor(w, r)));
}
#endif

#ifdef WHOLE_MEAN
// The means of planes that lie densely, one after the other; a warp has one.
extern "C" __global__ void __launch_bounds__(256) plane_means(const T* x, T* y, int64_t planes, int64_t length) {
  after_earlier_work();
  using A = opmath<T>;
  const int lane = threadIdx.x % 32;
  const int64_t plane = static_cast<int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
  if (plane >= planes) return;
  const T* from = x + plane * length;
  A sums[4] = {A(0), A(0), A(0), A(0)};
  int64_t i = lane;
  for (; i + 96 < length; i += 128) {
    T v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = from[i + 32 * k];
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[k] = sums[k] + convert<A>(v[k]);
  }
  for (; i < length; i += 32) sums[0] = sums[0] + convert<A>(from[i]);
  A sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum = sum + __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) y[plane] = convert<T>(shared_by(sum, length));
}
#endif

#if defined(GRADIENT_MAX) || defined(GRADIENT_MEAN)
// Element i of the input's gradient: what the windows that see it bring. For the maximum those whose index is the
// element's. Channels that lie beside each other have the same windows; neighbors of a line have their own along it.
#if LAST
constexpr int kLine = 1;
#else
constexpr int kLine = VECTOR;
#endif
extern "C" __global__ void __launch_bounds__(256)
    pool_gradient(const T* dy, const int64_t* indices, T* dx, const Windows w) {
  after_earlier_work();
  using A = opmath<T>;
  constexpr int kBeside = VECTOR / kLine;
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) * VECTOR;
  if (i >= w.count) return;
  const Place p = place_of(w, i);
  const int64_t plane = plane_of(w, p);
  const Range r[2] = {seen_by(w.axes[0], p.at[0]), seen_by(w.axes[1], p.at[1])};
  Range line[kLine];
#pragma unroll
  for (int k = 0; k < kLine; ++k) line[k] = seen_by(w.axes[2], p.at[2] + k);
#ifdef GRADIENT_MAX
  const int64_t own = (static_cast<int64_t>(p.at[0]) * w.axes[1].in + p.at[1]) * w.axes[2].in + p.at[2];
#endif
  A sum[VECTOR];
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) sum[k] = A(0);
  for (int32_t a = r[0].begin; a < r[0].end; ++a)
    for (int32_t b = r[1].begin; b < r[1].end; ++b) {
      const int64_t first = plane + a * w.strides[2] + b * w.strides[3];
#ifdef GRADIENT_MEAN
      if (!sees(w.axes[0], a, p.at[0]) || !sees(w.axes[1], b, p.at[1])) continue;
      Range windows[3];
      if (!w.divide_by) {
        windows[0] = window(w.axes[0], a);
        windows[1] = window(w.axes[1], b);
      }
#endif
#pragma unroll
      for (int k = 0; k < kLine; ++k)
        for (int32_t c = line[k].begin; c < line[k].end; ++c) {
          const int64_t at = first + c * w.strides[4];
#ifdef GRADIENT_MAX
          const Vector<int64_t, kBeside> chosen = load_vector<kBeside>(indices + at);
          const Vector<T, kBeside> brought = load_vector<kBeside>(dy + at);
#pragma unroll
          for (int j = 0; j < kBeside; ++j)
            if (chosen[j] == own + k) sum[k + j] = sum[k + j] + convert<A>(brought[j]);
#else
          if (!sees(w.axes[2], c, p.at[2] + k)) continue;
          int64_t count = w.divide_by;
          if (!count) {
            windows[2] = window(w.axes[2], c);
            count = divisor(w, windows);
          }
          const Vector<T, kBeside> brought = load_vector<kBeside>(dy + at);
#pragma unroll
          for (int j = 0; j < kBeside; ++j) sum[k + j] = sum[k + j] + shared_by(convert<A>(brought[j]), count);
#endif
        }
    }
  Vector<T, VECTOR> out;
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) out[k] = convert<T>(sum[k]);
  store_vector(dx + i, out);
}
#endif
