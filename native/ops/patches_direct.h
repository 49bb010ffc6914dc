// Products with patches read where they lie, for the instruction set that the including file is compiled for: see
// Note [Patches] in patches.h.
#pragma once
#include "ops/patches_pack.h"

namespace cresset {
namespace {

template <class T>
struct DirectPatches {
  using K = Kernels<T>;
  using Vector = typename K::Vector;
  static constexpr int kLanes = K::kLanes, kRows = K::kRows;

  // ---- the copy of an image that taps can be read from without checks

  // Element (channel, d, h, phase, q) is the image's at (d0 + d, h0 + h, w0 + q * step + phase), or zero outside of it.
  struct Copy {
    Scratch scratch;
    T* data;
    int64_t channel_step, d_step, h_step, phase_step, w0;
    std::vector<int64_t> tap_offset;  // of each tap, in order

    // For grid rows [h, h + rows) of plane d.
    void make(const Patches<T>& g, int64_t image, int64_t d, int64_t h, int64_t rows) {
      int64_t low[3], high[3];
      for (int i = 0; i < 3; ++i) {
        low[i] = *std::min_element(g.offset[i], g.offset[i] + g.taps[i]);
        high[i] = *std::max_element(g.offset[i], g.offset[i] + g.taps[i]);
      }
      const int64_t step = g.step[2], d0 = d * g.step[0] + low[0], h0 = h * g.step[1] + low[1];
      const int64_t depth = high[0] - low[0] + 1, height = (rows - 1) * g.step[1] + high[1] - low[1] + 1;
      w0 = low[2];
      phase_step = (g.grid_size[2] + (high[2] - low[2]) / step + kLanes - 1) / kLanes * kLanes + kLanes;
      h_step = phase_step * step;
      d_step = h_step * height;
      channel_step = d_step * depth;
      tap_offset.clear();
      for (int64_t td = 0; td < g.taps[0]; ++td)
        for (int64_t th = 0; th < g.taps[1]; ++th)
          for (int64_t tw = 0; tw < g.taps[2]; ++tw) {
            const int64_t shift = g.offset[2][tw] - w0;
            tap_offset.push_back((g.offset[0][td] - low[0]) * d_step + (g.offset[1][th] - low[1]) * h_step +
                                 shift % step * phase_step + shift / step);
          }
      data = scratch.template take<T>(g.channels * channel_step + 3 * kLanes);
      T* to = data;
      for (int64_t c = 0; c < g.channels; ++c)
        for (int64_t i = d0; i < d0 + depth; ++i)
          for (int64_t j = h0; j < h0 + height; ++j, to += h_step) {
            const bool inside = i >= 0 && i < g.image_size[0] && j >= 0 && j < g.image_size[1];
            copy_row(g, to,
                     inside
                         ? g.data + image * g.image_stride + c * g.channel_stride + i * g.strides[0] + j * g.strides[1]
                         : nullptr);
          }
    }
    void copy_row(const Patches<T>& g, T* to, const T* from) const {
      const int64_t step = g.step[2], width = g.image_size[2];
      for (int64_t phase = 0; phase < step; ++phase, to += phase_step) {
        // Elements w0 + phase + q * step for q in [first, last) are inside.
        const int64_t start = w0 + phase;
        const int64_t first =
            !from ? phase_step : std::min(phase_step, std::max<int64_t>(PatchPacking<T>::ceil_div(-start, step), 0));
        const int64_t last = std::max(first, std::min(phase_step, PatchPacking<T>::ceil_div(width - start, step)));
        std::fill(to, to + first, T(0));
        if (from)
          PatchPacking<T>::copy_run(to + first, from + (start + first * step) * g.strides[2], last - first,
                                    step * g.strides[2]);
        std::fill(to + last, to + phase_step, T(0));
      }
    }
  };

  // ---- rows of results

  // Up to three vectors of neighboring points.
  struct Points {
    const T* b[3];
    T* c[3];
    int64_t valid[3];
  };
  struct RowsTile {
    int64_t k;
    const T* a;
    const int64_t* offset;  // of each k
    int64_t c_line;
    bool adds;
    const T* row_start;
  };

  template <int R, int V>
  static void rows_tile(const RowsTile& t, const Points& points) {
    Vector sums[R][V] = {};
    const T* a = t.a;
    const T* b[V];
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) b[j] = points.b[j];
    for (int64_t p = 0; p < t.k; ++p, a += kRows) {
      const int64_t offset = t.offset[p];
      Vector row[V];
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) row[j] = K::at(b[j] + offset);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) sums[i][j] += a[i] * row[j];
    }
    if (t.row_start)
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) sums[i][j] += t.row_start[i];
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) {
      T* c = points.c[j];
      if (points.valid[j] == kLanes) {
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i)
          K::at(c + i * t.c_line) = t.adds ? sums[i][j] + K::at(c + i * t.c_line) : sums[i][j];
      } else {
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
          T values[kLanes];
          __builtin_memcpy(values, &sums[i][j], sizeof values);
          T* line = c + i * t.c_line;
          for (int64_t l = 0; l < points.valid[j]; ++l) line[l] = t.adds ? values[l] + line[l] : values[l];
        }
      }
    }
  }
  using RowsFunction = void (*)(const RowsTile&, const Points&);
  template <int V, int... R>
  static RowsFunction choose_rows(int64_t rows, std::integer_sequence<int, R...>) {
    static constexpr RowsFunction table[] = {rows_tile<R + 1, V>...};
    return table[rows - 1];
  }
  static RowsFunction choose_rows(int64_t rows, int64_t vectors) {
    constexpr auto all = std::make_integer_sequence<int, kRows>();
    return vectors == 3   ? choose_rows<3>(rows, all)
           : vectors == 2 ? choose_rows<2>(rows, all)
                          : choose_rows<1>(rows, all);
  }

  static void rows(const PatchRows<T>& r) {
    thread_local Copy kept_copy;
    thread_local std::vector<int64_t> kept_offsets;
    Copy& copy = kept_copy;
    std::vector<int64_t>& offsets = kept_offsets;
    const Patches<T>& g = r.patches;
    copy.make(g, r.image, r.d, r.first, r.count);
    const int64_t volume = g.volume(), k = g.channels * volume, whole_rows = (r.m + kRows - 1) / kRows * kRows;
    offsets.resize(static_cast<size_t>(k));
    for (int64_t c = 0, p = 0; c < g.channels; ++c)
      for (int64_t t = 0; t < volume; ++t)
        offsets[static_cast<size_t>(p++)] = c * copy.channel_step + copy.tap_offset[static_cast<size_t>(t)];
    const int64_t width = g.grid_size[2], in_row = (width + kLanes - 1) / kLanes, vectors = r.count * in_row;
    for (int64_t pc = 0; pc < k; pc += kBlockK) {
      RowsTile t{std::min(kBlockK, k - pc), nullptr, offsets.data() + pc, r.to_line, pc > 0, nullptr};
      for (int64_t v = 0; v < vectors; v += 3) {
        const int64_t count = std::min<int64_t>(3, vectors - v);
        Points points;
        T* c[3];
        for (int64_t j = 0; j < count; ++j) {
          const int64_t row = (v + j) / in_row, w = (v + j) % in_row * kLanes;
          points.b[j] = copy.data + row * g.step[1] * copy.h_step + w;
          points.valid[j] = std::min<int64_t>(kLanes, width - w);
          c[j] = r.to + row * r.to_row + w;
        }
        for (int64_t i = 0; i < r.m; i += kRows) {
          t.a = r.a.data + pc * whole_rows + i * t.k;
          t.row_start = pc == 0 && r.row_start ? r.row_start + i : nullptr;
          for (int64_t j = 0; j < count; ++j) points.c[j] = c[j] + i * r.to_line;
          choose_rows(std::min<int64_t>(kRows, r.m - i), count)(t, points);
        }
      }
    }
  }

  // ---- sums over all points

  struct SumsTile {
    const T* line[kRows];  // elements of the patches, along the points of a row
    int64_t rows, row_step, width;
    const T* b;  // the points' gradients: for each point, a panel's lines side by side
    T* c;
    int64_t c_line;
  };
  template <int R, int V>
  static void sums_tile(const SumsTile& t) {
    Vector sums[R][V] = {};
    const T* b = t.b;
    for (int64_t row = 0; row < t.rows; ++row) {
      const T* line[R];
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) line[i] = t.line[i] + row * t.row_step;
      for (int64_t w = 0; w < t.width; ++w, b += V * kLanes) {
        Vector v[V];
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) v[j] = K::at(b + j * kLanes);
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
          for (int j = 0; j < V; ++j) sums[i][j] += line[i][w] * v[j];
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) K::at(t.c + i * t.c_line + j * kLanes) += sums[i][j];
  }
  using SumsFunction = void (*)(const SumsTile&);
  template <int V, int... R>
  static SumsFunction choose_sums(int64_t rows, std::integer_sequence<int, R...>) {
    static constexpr SumsFunction table[] = {sums_tile<R + 1, V>...};
    return table[rows - 1];
  }
  static SumsFunction choose_sums(int64_t rows, int64_t vectors) {
    constexpr auto all = std::make_integer_sequence<int, kRows>();
    return vectors == 3   ? choose_sums<3>(rows, all)
           : vectors == 2 ? choose_sums<2>(rows, all)
                          : choose_sums<1>(rows, all);
  }

  // Packs the gradients of a rectangle of points: panels of up to three vectors of lines.
  static void pack_gradients(const PatchSums<T>& s, int64_t image, int64_t d, int64_t h, int64_t rows, int64_t w,
                             int64_t width, T* to) {
    const Patches<T>& g = s.grad;
    const int64_t points = rows * width;
    for (int64_t i = 0; i < s.m; i += K::kColumns) {
      const int64_t count = std::min<int64_t>(K::kColumns, s.m - i), panel = K::panel_width(count);
      for (int64_t row = 0; row < rows; ++row) {
        Factor<T> f;
        f.data = g.data + image * g.image_stride + i * g.channel_stride + d * g.strides[0] + (h + row) * g.strides[1] +
                 w * g.strides[2];
        f.line_step = g.channel_stride;
        f.k_step = g.strides[2];
        K::pack_panel(f, to + row * width * panel, 0, count, 0, width);
      }
      to += points * panel;
    }
  }

  static void sums(const PatchSums<T>& s) {
    thread_local Copy kept_copy;
    thread_local Scratch kept_gradients;
    Copy& copy = kept_copy;
    const Patches<T>& g = s.patches;
    const int64_t lines = g.channels * g.volume(), volume = g.volume();
    // Rectangles of about kBlockK points: whole rows, or a part of one.
    const int64_t width = std::min(g.grid_size[2], kBlockK), rows = std::max<int64_t>(kBlockK / g.grid_size[2], 1);
    T* const gradients = kept_gradients.take<T>(K::panel_width(s.m) * width * rows);
    // The image is copied for several rectangles at a time, so that rows at their borders are not copied too often.
    const int64_t rows_together = std::max<int64_t>(rows, 4 * g.taps[1]);
    for (int64_t image = s.image; image < s.image + s.count; ++image)
      for (int64_t d = 0; d < g.grid_size[0]; ++d)
        for (int64_t top = 0; top < g.grid_size[1]; top += rows_together) {
          const int64_t bottom = std::min(top + rows_together, g.grid_size[1]);
          copy.make(g, image, d, top, bottom - top);
          for (int64_t h = top; h < bottom; h += rows)
            for (int64_t w = 0; w < g.grid_size[2]; w += width) {
              SumsTile t;
              t.rows = std::min(rows, bottom - h);
              t.width = std::min(width, g.grid_size[2] - w);
              t.row_step = g.step[1] * copy.h_step;
              t.c_line = s.to_line;
              pack_gradients(s, image, d, h, t.rows, w, t.width, gradients);
              const T* origin = copy.data + (h - top) * t.row_step + w;
              t.b = gradients;
              for (int64_t i = 0; i < s.m; i += K::kColumns) {
                const int64_t vectors = K::panel_width(std::min<int64_t>(K::kColumns, s.m - i)) / kLanes;
                for (int64_t j = 0; j < lines; j += kRows) {
                  const int64_t count = std::min<int64_t>(kRows, lines - j);
                  for (int64_t l = 0; l < count; ++l)
                    t.line[l] = origin + (j + l) / volume * copy.channel_step +
                                copy.tap_offset[static_cast<size_t>((j + l) % volume)];
                  t.c = s.to + j * s.to_line + i;
                  choose_sums(count, vectors)(t);
                }
                t.b += t.rows * t.width * vectors * kLanes;
              }
            }
        }
  }
};

}  // namespace
}  // namespace cresset
