// Packing of patches, for the instruction set that the including file is compiled for.
#pragma once
#include <vector>

#include "ops/gemm_tiles.h"
#include "ops/patches.h"

namespace cresset {
namespace {

template <class T>
struct PatchPacking {
  // Neighbouring points in one row of the grid.
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

  // The part of a segment that lies inside the image at one tap; false when none does.
  static bool clip(const Patches<T>& g, const Segment& s, int64_t td, int64_t th, int64_t tw, Run& run) {
    const int64_t d = s.d * g.step[0] + g.offset[0][td], h = s.h * g.step[1] + g.offset[1][th], shift = g.offset[2][tw];
    if (d < 0 || d >= g.image_size[0] || h < 0 || h >= g.image_size[1]) return false;
    const int64_t low = std::max(s.w, ceil_div(-shift, g.step[2])), high = std::min(s.w + s.count, ceil_div(g.image_size[2] - shift, g.step[2]));
    if (low >= high) return false;
    run.from = s.image * g.image_stride + d * g.strides[0] + h * g.strides[1] + (low * g.step[2] + shift) * g.strides[2];
    run.to = s.to + low - s.w;
    run.count = high - low;
    return true;
  }

  static void copy_run(T* to, const T* from, int64_t n) {
    constexpr int64_t kLanes = Kernels<T>::kLanes;
    if (n >= kLanes) {
      int64_t i = 0;
      for (; i + kLanes <= n; i += kLanes) Kernels<T>::at(to + i) = Kernels<T>::at(from + i);
      if (i < n) Kernels<T>::at(to + n - kLanes) = Kernels<T>::at(from + n - kLanes);
      return;
    }
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
  static void copy_run(T* to, const T* from, int64_t n, int64_t step) {
    if (step == 1) return copy_run(to, from, n);
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
  }

  static void points(const void* context, T* panel, int64_t width, int64_t first, int64_t count, int64_t k0, int64_t length) {
    const auto& g = *static_cast<const Patches<T>*>(context);
    // What is copied for each tap is the same for all channels, but for the channel's place.
    thread_local std::vector<Segment> segments;
    thread_local std::vector<Run> runs;
    thread_local std::vector<int64_t> ends;  // of each tap's runs; negative: they do not cover all points
    segments_of(g, first, count, segments);
    runs.clear();
    ends.clear();
    for (int64_t td = 0; td < g.taps[0]; ++td)
      for (int64_t th = 0; th < g.taps[1]; ++th)
        for (int64_t tw = 0; tw < g.taps[2]; ++tw) {
          int64_t covered = 0;
          for (const Segment& s : segments) {
            Run run;
            if (!clip(g, s, td, th, tw, run)) continue;
            covered += run.count;
            runs.push_back(run);
          }
          const auto end = static_cast<int64_t>(runs.size());
          ends.push_back(covered == count ? end : -end - 1);
        }
    const int64_t volume = g.volume(), step = g.step[2] * g.strides[2];
    int64_t channel = k0 / volume, tap = k0 % volume;
    const auto end_of = [&](int64_t t) { return ends[static_cast<size_t>(t)] < 0 ? -ends[static_cast<size_t>(t)] - 1 : ends[static_cast<size_t>(t)]; };
    int64_t r = tap ? end_of(tap - 1) : 0;
    for (int64_t p = 0; p < length; ++p) {
      T* row = panel + p * width;
      const T* from = g.data + channel * g.channel_stride;
      if (ends[static_cast<size_t>(tap)] < 0) std::memset(row, 0, static_cast<size_t>(width) * sizeof(T));
      for (const int64_t end = end_of(tap); r < end; ++r) {
        const Run& run = runs[static_cast<size_t>(r)];
        copy_run(row + run.to, from + run.from, run.count, step);
      }
      if (++tap == volume) {
        tap = r = 0;
        ++channel;
      }
    }
    if (count < width)
      for (int64_t p = 0; p < length; ++p)
        for (int64_t i = count; i < width; ++i) panel[p * width + i] = 0;
  }

  static void taps(const void* context, T* panel, int64_t width, int64_t first, int64_t count, int64_t k0, int64_t length) {
    const auto& g = *static_cast<const Patches<T>*>(context);
    thread_local std::vector<Segment> segments;
    segments_of(g, k0, length, segments);
    // Lines are gathered side by side, then turned into a panel.
    constexpr int64_t kMostLength = kBlockK;
    alignas(64) static thread_local T lines[Kernels<T>::kColumns * kMostLength];
    const int64_t volume = g.volume(), step = g.step[2] * g.strides[2];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t channel = (first + i) / volume, tap = (first + i) % volume;
      const int64_t tw = tap % g.taps[2], th = tap / g.taps[2] % g.taps[1], td = tap / g.taps[2] / g.taps[1];
      const T* from = g.data + channel * g.channel_stride;
      T* line = lines + i * kMostLength;
      int64_t done = 0;
      for (const Segment& s : segments) {
        Run run;
        if (!clip(g, s, td, th, tw, run)) continue;
        if (run.to > done) std::memset(line + done, 0, static_cast<size_t>(run.to - done) * sizeof(T));
        copy_run(line + run.to, from + run.from, run.count, step);
        done = run.to + run.count;
      }
      if (done < length) std::memset(line + done, 0, static_cast<size_t>(length - done) * sizeof(T));
    }
    Factor<T> f;
    f.data = lines;
    f.line_step = kMostLength;
    f.k_step = 1;
    using K = Kernels<T>;
    if (width == K::kRows) K::template pack<K::kRows>(f, panel, 0, count, 0, length);
    else K::pack_panel(f, panel, 0, count, 0, length);
  }
};

}  // namespace
}  // namespace cresset
