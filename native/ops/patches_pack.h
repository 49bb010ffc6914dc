// Packing of patches, for the instruction set that the including file is compiled for: see Note [Patches] in patches.h.
#pragma once
#include <vector>

#include "ops/gemm_tiles.h"
#include "ops/patches.h"

namespace cresset {
namespace {

template <class T>
struct PatchPacking {
  // Neighboring points in one row of the grid.
  struct Segment {
    int64_t image, d, h, w, count, to;
  };
  // Elements to copy: from an offset in the image's first channel, to a position among the points.
  struct Run {
    int64_t from, to, count;
  };

  static void segments_of(const Patches<T>& g, int64_t first, int64_t count, std::vector<Segment>& out) {
    out.clear();
    const int64_t width = g.grid_size[2], height = g.grid_size[1];
    int64_t row = first / width, w = first % width;
    for (int64_t to = 0; to < count; ++row, w = 0) {
      const int64_t n = std::min(width - w, count - to);
      out.push_back({row / height / g.grid_size[0], row / height % g.grid_size[0], row % height, w, n, to});
      to += n;
    }
  }

  static int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

  // For one tap along w, the points [first, last) whose element lies inside the image.
  struct Inside {
    int64_t first, last;
  };

  // The part of a segment that lies inside the image at one tap; false when none does.
  static bool clip(const Patches<T>& g, const Segment& s, int64_t td, int64_t th, int64_t tw, const Inside& inside,
                   Run& run) {
    const int64_t d = s.d * g.step[0] + g.offset[0][td], h = s.h * g.step[1] + g.offset[1][th], shift = g.offset[2][tw];
    if (d < 0 || d >= g.image_size[0] || h < 0 || h >= g.image_size[1]) return false;
    const int64_t low = std::max(s.w, inside.first), high = std::min(s.w + s.count, inside.last);
    if (low >= high) return false;
    run.from =
        s.image * g.image_stride + d * g.strides[0] + h * g.strides[1] + (low * g.step[2] + shift) * g.strides[2];
    run.to = s.to + low - s.w;
    run.count = high - low;
    return true;
  }

  template <int N>
  static void copy_both_ends(T* to, const T* from, int64_t n) {  // N <= n <= 2 N
    T first[N], last[N];
    std::memcpy(first, from, sizeof first);
    std::memcpy(last, from + n - N, sizeof last);
    std::memcpy(to, first, sizeof first);
    std::memcpy(to + n - N, last, sizeof last);
  }
  template <int N>
  static void copy_few(T* to, const T* from, int64_t n) {  // n < 2 N
    if (n >= N) return copy_both_ends<N>(to, from, n);
    if constexpr (N > 1) copy_few<N / 2>(to, from, n);
  }
  static void copy_run(T* to, const T* from, int64_t n) {
    constexpr int kLanes = Kernels<T>::kLanes;
    if (n < kLanes) return copy_few<kLanes / 2>(to, from, n);
    for (int64_t i = 0; i + kLanes <= n; i += kLanes) Kernels<T>::at(to + i) = Kernels<T>::at(from + i);
    Kernels<T>::at(to + n - kLanes) = Kernels<T>::at(from + n - kLanes);
  }
  template <int... I>
  [[gnu::always_inline]] static void copy_even(T* to, const T* from, std::integer_sequence<int, I...>) {
    const typename Kernels<T>::Vector a = Kernels<T>::at(from), b = Kernels<T>::at(from + Kernels<T>::kLanes);
    Kernels<T>::at(to) = __builtin_shufflevector(a, b, (2 * I)...);
  }
  static void copy_run(T* to, const T* from, int64_t n, int64_t step) {
    constexpr int kLanes = Kernels<T>::kLanes;
    if (step == 1) return copy_run(to, from, n);
    int64_t i = 0;
    if (step == 2)  // strictly less: the element after the last one may not exist
      for (; i + kLanes < n; i += kLanes) copy_even(to + i, from + 2 * i, std::make_integer_sequence<int, kLanes>());
    for (; i < n; ++i) to[i] = from[i * step];
  }

  static void points(const void* context, T* panel, int64_t width, int64_t first, int64_t count, int64_t k0,
                     int64_t length) {
    const auto& g = *static_cast<const Patches<T>*>(context);
    // What is copied for each tap is the same for all channels, but for the channel's place.
    thread_local std::vector<Segment> segments;
    thread_local std::vector<Run> runs;
    thread_local std::vector<int64_t> ends;  // of each tap's runs; negative: they do not cover all points
    thread_local std::vector<Inside> inside;
    segments_of(g, first, count, segments);
    runs.clear();
    ends.clear();
    inside.clear();
    for (int64_t tw = 0; tw < g.taps[2]; ++tw)
      inside.push_back({ceil_div(-g.offset[2][tw], g.step[2]), ceil_div(g.image_size[2] - g.offset[2][tw], g.step[2])});
    for (int64_t td = 0; td < g.taps[0]; ++td)
      for (int64_t th = 0; th < g.taps[1]; ++th)
        for (int64_t tw = 0; tw < g.taps[2]; ++tw) {
          int64_t covered = 0;
          for (const Segment& s : segments) {
            Run run;
            if (!clip(g, s, td, th, tw, inside[static_cast<size_t>(tw)], run)) continue;
            covered += run.count;
            runs.push_back(run);
          }
          const auto end = static_cast<int64_t>(runs.size());
          ends.push_back(covered == count ? end : -end - 1);
        }
    const int64_t volume = g.volume(), step = g.step[2] * g.strides[2];
    int64_t channel = k0 / volume, tap = k0 % volume;
    const int64_t* const tap_end = ends.data();
    const Run* const all = runs.data();
    const auto end_of = [&](int64_t t) { return tap_end[t] < 0 ? -tap_end[t] - 1 : tap_end[t]; };
    int64_t r = tap ? end_of(tap - 1) : 0;
    for (int64_t p = 0; p < length; ++p) {
      T* row = panel + p * width;
      const T* from = g.data + channel * g.channel_stride;
      if (tap_end[tap] < 0) std::memset(row, 0, static_cast<size_t>(width) * sizeof(T));
      for (const int64_t end = end_of(tap); r < end; ++r)
        copy_run(row + all[r].to, from + all[r].from, all[r].count, step);
      if (++tap == volume) {
        tap = r = 0;
        ++channel;
      }
    }
    if (count < width)
      for (int64_t p = 0; p < length; ++p)
        for (int64_t i = count; i < width; ++i) panel[p * width + i] = 0;
  }
};

}  // namespace
}  // namespace cresset
