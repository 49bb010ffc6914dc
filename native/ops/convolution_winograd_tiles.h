// Winograd's convolution, for the instruction set that the including file is compiled for: see Note [Fewer
// multiplications] in convolution_winograd.h. Everything is in an anonymous namespace: each instruction set has its own
// copy.
#pragma once
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "ops/convolution_lanes.h"
#include "ops/convolution_winograd.h"

namespace cresset {
namespace {

constexpr int64_t kPositions = 16;  // of a tile of 4 x 4
constexpr int64_t kTaps = 9;

// ---- sizes

int64_t rows_of_tiles(const WinogradSizes& s) { return (s.out[0] + 1) / 2; }
int64_t columns_of_tiles(const WinogradSizes& s) { return (s.out[1] + 1) / 2; }
int64_t tiles_of(const WinogradSizes& s) { return s.images * rows_of_tiles(s) * columns_of_tiles(s); }
// So many that the transformed tiles stay in the second-level cache, and a multiple of all numbers of rows.
int64_t tiles_together(const WinogradSizes& s, bool sums) {
  constexpr int64_t kFloats = 65536, kUnit = 24;
  const int64_t wanted = kFloats / (kPositions * (s.from + s.to)) / kUnit * kUnit;
  return std::clamp<int64_t>(wanted, sums ? 4 * kUnit : kUnit, 8 * kUnit);
}
// From one of the 16 matrices to the next; not a power of two, which would put all 16 in the same lines of the cache.
int64_t apart(int64_t elements) { return elements + kLanes; }
int64_t from_apart(const WinogradSizes& s, bool sums) { return apart(tiles_together(s, sums) * s.from); }
int64_t to_apart(const WinogradSizes& s, bool sums) { return apart(tiles_together(s, sums) * s.to); }
int64_t filter_apart(const WinogradSizes& s) { return apart(s.from * s.to); }

int64_t scratch(const WinogradSizes& s, bool sums) {
  return kPositions * (from_apart(s, sums) + to_apart(s, sums) + (sums ? filter_apart(s) : 0)) + s.from;
}
int64_t packed(const WinogradSizes& s) { return kPositions * filter_apart(s); }

// ---- products of matrices

// The second factor lies in panels, the columns of one tile after the other, so narrow that one stays in the
// first-level cache.
int64_t panel_width(int64_t rows) { return (rows <= 128 ? kMostVectors : 2) * kLanes; }
int64_t in_panels(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  const int64_t wide = panel_width(rows), first = column / wide * wide;
  return first * rows + row * std::min(wide, columns - first) + (column - first);
}

// R rows by V vectors of c = a b, or c += a b. kSide: a lies [k][row].
template <int R, int V, bool kSide, bool kAdds>
void product_tile(int64_t k, const float* a, int64_t a_step, const float* b, float* c, int64_t c_step) {
  Vector sums[R][V] = {};
  const int64_t line = kSide ? 1 : a_step, step = kSide ? a_step : 1;
  for (int64_t p = 0; p < k; ++p, a += step, b += V * kLanes) {
    Vector row[V];
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) row[j] = at(b + j * kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) sums[i][j] += a[i * line] * row[j];
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) {
      Loose& to = at(c + i * c_step + j * kLanes);
      if constexpr (kAdds)
        to = to + sums[i][j];
      else
        to = sums[i][j];
    }
}

using TileFunction = void (*)(int64_t k, const float* a, int64_t a_step, const float* b, float* c, int64_t c_step);
template <int V, bool kSide, bool kAdds, int... R>
constexpr auto tile_table(std::integer_sequence<int, R...>) {
  return std::array<TileFunction, sizeof...(R)>{product_tile<R + 1, V, kSide, kAdds>...};
}
template <int V, bool kSide, bool kAdds>
void product_columns(int64_t m, int64_t k, const float* a, const float* b, float* c, int64_t c_step) {
  constexpr int kRows = rows_for(V);
  static constexpr auto table = tile_table<V, kSide, kAdds>(std::make_integer_sequence<int, kRows>());
  const int64_t a_step = kSide ? m : k;
  for (int64_t i = 0; i < m; i += kRows) {
    const int64_t rows = std::min<int64_t>(kRows, m - i);
    table[static_cast<size_t>(rows - 1)](k, a + i * (kSide ? 1 : a_step), a_step, b, c + i * c_step, c_step);
  }
}
// c[m][n] = a b, or c += a b, with a[m][k] (kSide: a[k][m]) and b[k][n] in panels.
template <bool kSide, bool kAdds>
void product(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) {
  const int64_t wide = panel_width(k);
  for (int64_t j = 0; j < n; j += wide) {
    const int64_t vectors = std::min(wide, n - j) / kLanes;
    const float* const panel = b + j * k;
    if (vectors == 1)
      product_columns<1, kSide, kAdds>(m, k, a, panel, c + j, n);
    else if (vectors == 2)
      product_columns<2, kSide, kAdds>(m, k, a, panel, c + j, n);
    if constexpr (kMostVectors == 4) {
      if (vectors == 3)
        product_columns<3, kSide, kAdds>(m, k, a, panel, c + j, n);
      else if (vectors == 4)
        product_columns<4, kSide, kAdds>(m, k, a, panel, c + j, n);
    }
  }
}

// ---- tiles

// What a block of tiles covers.
struct Place {
  int64_t image, row, column;  // of the results
};
Place place_of(const WinogradSizes& s, int64_t tile) {
  const int64_t columns = columns_of_tiles(s), rows = rows_of_tiles(s);
  return {tile / columns / rows, tile / columns % rows * 2, tile % columns * 2};
}
void next(const WinogradSizes& s, Place& p) {
  if ((p.column += 2) < s.out[1]) return;
  p.column = 0;
  if ((p.row += 2) < s.out[0]) return;
  p.row = 0;
  ++p.image;
}

// B' d B of one vector of channels; from(i, j) is where the element in row i and column j lies.
template <class From>
[[gnu::always_inline]] inline void turn_tile(const From& from, float* to, int64_t step) {
  Vector t[4][4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const Vector d0 = at(from(0, j)), d1 = at(from(1, j)), d2 = at(from(2, j)), d3 = at(from(3, j));
    t[0][j] = d0 - d2;
    t[1][j] = d1 + d2;
    t[2][j] = d2 - d1;
    t[3][j] = d1 - d3;
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    at(to + (4 * i) * step) = t[i][0] - t[i][2];
    at(to + (4 * i + 1) * step) = t[i][1] + t[i][2];
    at(to + (4 * i + 2) * step) = t[i][2] - t[i][1];
    at(to + (4 * i + 3) * step) = t[i][1] - t[i][3];
  }
}

// Tiles of the images, [position][tile][channel].
void turn_images(const WinogradSizes& s, const float* x, int64_t first, int64_t count, const float* zeros, float* to,
                 int64_t step) {
  const int64_t channels = s.from, row_step = s.in[1] * channels;
  Place p = place_of(s, first);
  for (int64_t t = 0; t < count; ++t, next(s, p)) {
    const int64_t row = p.row - s.before[0], column = p.column - s.before[1];
    const float* corner = x + p.image * s.in[0] * row_step + row * row_step + column * channels;
    float* const place = to + t * channels;
    if (row >= 0 && column >= 0 && row + 4 <= s.in[0] && column + 4 <= s.in[1]) {
      for (int64_t c = 0; c < channels; c += kLanes)
        turn_tile([&](int i, int j) __attribute__((always_inline)) { return corner + i * row_step + j * channels + c; },
                  place + c, step);
    } else {
      const float* points[4][4];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
          const bool there = row + i >= 0 && row + i < s.in[0] && column + j >= 0 && column + j < s.in[1];
          points[i][j] = there ? corner + i * row_step + j * channels : zeros;
        }
      for (int64_t c = 0; c < channels; c += kLanes)
        turn_tile([&](int i, int j) __attribute__((always_inline)) { return points[i][j] + c; }, place + c, step);
    }
  }
}

// A' m A of one vector of channels.
[[gnu::always_inline]] inline void turn_back(const float* from, int64_t step, Vector (&y)[2][2]) {
  Vector t[2][4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const Vector m0 = at(from + j * step), m1 = at(from + (4 + j) * step), m2 = at(from + (8 + j) * step),
                 m3 = at(from + (12 + j) * step);
    t[0][j] = m0 + m1 + m2;
    t[1][j] = m1 - m2 - m3;
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    y[i][0] = t[i][0] + t[i][1] + t[i][2];
    y[i][1] = t[i][1] - t[i][2] - t[i][3];
  }
}

bool is_zero(const Vector& v) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return sum == 0;
}

// The results of a block of tiles; false if one is not finite.
bool put_results(const WinogradSizes& s, const float* from, int64_t step, int64_t first, int64_t count,
                 const float* bias, float* y) {
  const int64_t channels = s.to, row_step = s.out[1] * channels;
  Vector rest = {};  // of what is finite, zero
  Place p = place_of(s, first);
  for (int64_t t = 0; t < count; ++t, next(s, p)) {
    float* const corner = y + (p.image * s.out[0] + p.row) * row_step + p.column * channels;
    const bool right = p.column + 1 < s.out[1], below = p.row + 1 < s.out[0];
    for (int64_t c = 0; c < channels; c += kLanes) {
      Vector r[2][2];
      turn_back(from + t * channels + c, step, r);
      const Vector add = bias ? Vector(at(bias + c)) : Vector{};
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i)
#pragma GCC unroll 2
        for (int j = 0; j < 2; ++j) {
          r[i][j] += add;
          rest += r[i][j] * 0.0f;
        }
      float* const to = corner + c;
      at(to) = r[0][0];
      if (right) at(to + channels) = r[0][1];
      if (below) at(to + row_step) = r[1][0];
      if (right && below) at(to + row_step + channels) = r[1][1];
    }
  }
  return is_zero(rest);
}

// Tiles of the gradient, A dy A', [position][tile][channel] in panels. What lies outside counts as zero.
void turn_gradient(const WinogradSizes& s, const float* dy, int64_t first, int64_t count, float* to, int64_t step) {
  const int64_t channels = s.to, row_step = s.out[1] * channels;
  Place p = place_of(s, first);
  for (int64_t t = 0; t < count; ++t, next(s, p)) {
    const float* const corner = dy + (p.image * s.out[0] + p.row) * row_step + p.column * channels;
    const bool right = p.column + 1 < s.out[1], below = p.row + 1 < s.out[0];
    for (int64_t c = 0; c < channels; c += kLanes) {
      const float* const from = corner + c;
      const Vector y00 = at(from), y01 = right ? Vector(at(from + channels)) : Vector{},
                   y10 = below ? Vector(at(from + row_step)) : Vector{},
                   y11 = right && below ? Vector(at(from + row_step + channels)) : Vector{};
      const Vector rows[4][2] = {{y00, y01}, {y00 + y10, y01 + y11}, {y00 - y10, y01 - y11}, {-y10, -y11}};
      float* const place = to + in_panels(count, channels, t, c);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        at(place + (4 * i) * step) = rows[i][0];
        at(place + (4 * i + 1) * step) = rows[i][0] + rows[i][1];
        at(place + (4 * i + 2) * step) = rows[i][0] - rows[i][1];
        at(place + (4 * i + 3) * step) = -rows[i][1];
      }
    }
  }
}

// ---- filters

// G F G' for all pairs of channels with `to` in [begin, end).
void pack(const WinogradSizes& s, const WinogradFilter& f, int64_t begin, int64_t end, float* packed) {
  const int64_t step = filter_apart(s);
  for (int64_t j = begin; j < end; j += kLanes)
    for (int64_t i = 0; i < s.from; ++i) {
      const float* w = f.weight + i * f.from_step + j * f.to_step;
      Vector g[3][3], h[4][3];
      float* const place = packed + in_panels(s.from, s.to, i, j);
#pragma GCC unroll 9
      for (int t = 0; t < kTaps; ++t) {
        Vector v;
        for (int64_t l = 0; l < kLanes; ++l) v[l] = w[l * f.to_step + (f.turned ? kTaps - 1 - t : t)];
        g[t / 3][t % 3] = v;
      }
#pragma GCC unroll 3
      for (int c = 0; c < 3; ++c) {
        const Vector ends = g[0][c] + g[2][c];
        h[0][c] = g[0][c];
        h[1][c] = (ends + g[1][c]) * 0.5f;
        h[2][c] = (ends - g[1][c]) * 0.5f;
        h[3][c] = g[2][c];
      }
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        const Vector ends = h[r][0] + h[r][2];
        at(place + (4 * r) * step) = h[r][0];
        at(place + (4 * r + 1) * step) = (ends + h[r][1]) * 0.5f;
        at(place + (4 * r + 2) * step) = (ends - h[r][1]) * 0.5f;
        at(place + (4 * r + 3) * step) = h[r][2];
      }
    }
}

// G' u G for all pairs of channels; false if a result is not finite.
bool put_filter(const WinogradSizes& s, const float* sums, int64_t step, float* to) {
  const int64_t pairs = s.from * s.to;
  Vector rest = {};
  for (int64_t i = 0; i < pairs; i += kLanes) {
    Vector t[3][4];
    for (int j = 0; j < 4; ++j) {
      const Vector u0 = at(sums + j * step + i), u1 = at(sums + (4 + j) * step + i), u2 = at(sums + (8 + j) * step + i),
                   u3 = at(sums + (12 + j) * step + i);
      const Vector half = (u1 + u2) * 0.5f;
      t[0][j] = u0 + half;
      t[1][j] = (u1 - u2) * 0.5f;
      t[2][j] = half + u3;
    }
    for (int r = 0; r < 3; ++r) {
      const Vector half = (t[r][1] + t[r][2]) * 0.5f,
                   g[3] = {t[r][0] + half, (t[r][1] - t[r][2]) * 0.5f, half + t[r][3]};
      for (int c = 0; c < 3; ++c) {
        at(to + (3 * r + c) * pairs + i) = g[c];
        rest += g[c] * 0.0f;
      }
    }
  }
  return is_zero(rest);
}

// ---- by the definition

// f(point of the images, point of the results, tap) for all that belong together.
template <class F>
void for_taps(const WinogradSizes& s, const F& f) {
  for (int64_t image = 0; image < s.images; ++image)
    for (int64_t row = 0; row < s.out[0]; ++row)
      for (int64_t column = 0; column < s.out[1]; ++column)
        for (int64_t t = 0; t < kTaps; ++t) {
          const int64_t r = row - s.before[0] + t / 3, c = column - s.before[1] + t % 3;
          if (r < 0 || r >= s.in[0] || c < 0 || c >= s.in[1]) continue;
          f((image * s.in[0] + r) * s.in[1] + c, (image * s.out[0] + row) * s.out[1] + column, t);
        }
}
void images_plainly(const WinogradSizes& s, const float* x, const WinogradFilter& f, const float* bias, float* y) {
  std::vector<float> filter(static_cast<size_t>(kTaps * s.from * s.to));
  for (int64_t t = 0; t < kTaps; ++t)
    for (int64_t i = 0; i < s.from; ++i)
      for (int64_t j = 0; j < s.to; ++j)
        filter[static_cast<size_t>((t * s.from + i) * s.to + j)] =
            f.weight[i * f.from_step + j * f.to_step + (f.turned ? kTaps - 1 - t : t)];
  for (int64_t i = 0; i < s.images * s.out[0] * s.out[1]; ++i)
    for (int64_t k = 0; k < s.to; ++k) y[i * s.to + k] = bias ? bias[k] : 0.0f;
  for_taps(s, [&](int64_t from, int64_t to, int64_t tap) {
    for (int64_t c = 0; c < s.from; ++c)
      for (int64_t k = 0; k < s.to; ++k)
        y[to * s.to + k] += x[from * s.from + c] * filter[static_cast<size_t>((tap * s.from + c) * s.to + k)];
  });
}
void sums_plainly(const WinogradSizes& s, const float* dy, const float* x, float* sums) {
  std::fill_n(sums, kTaps * s.from * s.to, 0.0f);
  for_taps(s, [&](int64_t from, int64_t to, int64_t tap) {
    for (int64_t c = 0; c < s.from; ++c)
      for (int64_t k = 0; k < s.to; ++k)
        sums[(tap * s.from + c) * s.to + k] += x[from * s.from + c] * dy[to * s.to + k];
  });
}

// ---- whole

void images(const WinogradSizes& s, const float* x, const WinogradFilter& f, const float* packed, const float* bias,
            float* y, float* scratch) {
  const int64_t together = tiles_together(s, false), all = tiles_of(s), from_step = from_apart(s, false),
                to_step = to_apart(s, false), filter_step = filter_apart(s);
  float *const tiles = scratch, *const results = tiles + kPositions * from_step,
               *const zeros = results + kPositions * to_step;
  std::fill_n(zeros, s.from, 0.0f);
  bool finite = true;
  for (int64_t first = 0; first < all; first += together) {
    const int64_t count = std::min(together, all - first);
    turn_images(s, x, first, count, zeros, tiles, from_step);
    for (int64_t p = 0; p < kPositions; ++p)
      product<false, false>(count, s.to, s.from, tiles + p * from_step, packed + p * filter_step,
                            results + p * to_step);
    finite &= put_results(s, results, to_step, first, count, bias, y);
  }
  if (!finite) images_plainly(s, x, f, bias, y);
}

void sums(const WinogradSizes& s, const float* dy, const float* x, float* to, float* scratch) {
  const int64_t together = tiles_together(s, true), all = tiles_of(s), from_step = from_apart(s, true),
                to_step = to_apart(s, true), filter_step = filter_apart(s);
  float *const tiles = scratch, *const gradients = tiles + kPositions * from_step,
               *const filters = gradients + kPositions * to_step, *const zeros = filters + kPositions * filter_step;
  std::fill_n(zeros, s.from, 0.0f);
  std::fill_n(filters, kPositions * filter_step, 0.0f);
  for (int64_t first = 0; first < all; first += together) {
    const int64_t count = std::min(together, all - first);
    turn_images(s, x, first, count, zeros, tiles, from_step);
    turn_gradient(s, dy, first, count, gradients, to_step);
    for (int64_t p = 0; p < kPositions; ++p)
      product<true, true>(s.from, s.to, count, tiles + p * from_step, gradients + p * to_step,
                          filters + p * filter_step);
  }
  if (!put_filter(s, filters, filter_step, to)) sums_plainly(s, dy, x, to);
}

}  // namespace
}  // namespace cresset
