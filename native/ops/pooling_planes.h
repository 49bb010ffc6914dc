// Pooling of planes whose rows are contiguous: one plane of the input to one of the result.
#pragma once
#include <algorithm>
#include <limits>
#include <vector>

#include "base/instruction_set.h"
#include "ops/fold.h"
#include "ops/pooling_channels.h"

namespace cresset {

template <class T>
inline constexpr bool is_real_floating =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// f(row of the result, row of the input) for every pair that meets; `first` is called before the input's rows.
template <class First, class Rows>
void for_rows(const Axes& a, First&& first, Rows&& rows) {
  for (int64_t d = 0; d < a[0].out; ++d)
    for (int64_t h = 0; h < a[1].out; ++h) {
      const size_t sd = static_cast<size_t>(d), sh = static_cast<size_t>(h);
      const int64_t row = d * a[1].out + h;
      first(row, a[0].begin[sd] * a[1].in + a[1].begin[sh], d, h);
      for (int64_t i = a[0].begin[sd]; i < a[0].end[sd]; i += a[0].step)
        for (int64_t j = a[1].begin[sh]; j < a[1].end[sh]; j += a[1].step) rows(row, i * a[1].in + j);
    }
}

// A row of windows that lie wholly in a line of the input: element k of all of them at a time, so that no branch has to
// be guessed. Guessing takes ten times as long.
template <class T, class Place>
struct MaxRow {
  using M = opmath<T>;
  template <class Fma>
  CRESSET_INLINE void run(const T* line, const Axis* w, int64_t from, M* best, Place* at) {
    const auto walk = [&](auto stride) __attribute__((always_inline)) {
      const int64_t count = w->last_whole - w->first_whole, start = w->begin[static_cast<size_t>(w->first_whole)];
      M* const m = best + w->first_whole;
      Place* const p = at + w->first_whole;
      for (int64_t k = 0; k < w->taps; ++k) {
        const T* const x = line + start + k * w->step;
        const Place place = static_cast<Place>(from + start + k * w->step);
#pragma GCC ivdep
        for (int64_t o = 0; o < count; ++o) {
          const M v = static_cast<M>(x[o * stride]);
          const bool take = (v > m[o]) | (v != v);
          m[o] = take ? v : m[o];
          p[o] = take ? place + static_cast<Place>(o * stride) : p[o];
        }
      }
    };
    if (w->stride == 1) return walk(std::integral_constant<int64_t, 1>());
    if (w->stride == 2) return walk(std::integral_constant<int64_t, 2>());
    walk(w->stride);
  }
};

template <class T, class Place>
void max_plane(const Axes& a, const T* x, T* y, int64_t* indices) {
  using M = opmath<T>;
  const Axis& w = a[2];
  std::vector<M> best(static_cast<size_t>(w.out));
  std::vector<Place> at(static_cast<size_t>(w.out));
  int64_t open = -1;
  const auto close = [&] {
    if (open < 0) return;
    for (int64_t o = 0; o < w.out; ++o) y[open * w.out + o] = T(best[static_cast<size_t>(o)]);
    for (int64_t o = 0; o < w.out; ++o) indices[open * w.out + o] = at[static_cast<size_t>(o)];
  };
  for_rows(
      a,
      [&](int64_t row, int64_t corner, int64_t, int64_t) {
        close();
        open = row;
        for (size_t o = 0; o < best.size(); ++o) {
          best[o] = std::numeric_limits<M>::has_infinity ? -std::numeric_limits<M>::infinity()
                                                         : std::numeric_limits<M>::lowest();
          at[o] = static_cast<Place>(corner * w.in + w.begin[o]);
        }
      },
      [&](int64_t, int64_t from) {
        const T* line = x + from * w.in;
        const auto cut = [&](int64_t begin, int64_t end) {
          for (auto o = static_cast<size_t>(begin); o < static_cast<size_t>(end); ++o)
            for (int64_t i = w.begin[o]; i < w.end[o]; i += w.step) {
              const M v = static_cast<M>(line[i]);
              if (v > best[o] || v != v) best[o] = v, at[o] = static_cast<Place>(from * w.in + i);
            }
        };
        cut(0, w.first_whole);
        if (w.first_whole < w.last_whole) {
          if constexpr (is_real_floating<T>)
            run_vectorized_256<MaxRow<T, Place>>(line, &w, from * w.in, best.data(), at.data());
          else
            MaxRow<T, Place>::template run<HardwareFma>(line, &w, from * w.in, best.data(), at.data());
        }
        cut(w.last_whole, w.out);
      });
  close();
}

// Whether all of a plane is one window.
inline bool is_one_window(const Axes& a) {
  return std::ranges::all_of(
      a, [](const Axis& w) { return w.out == 1 && w.step == 1 && w.begin[0] == 0 && w.end[0] == w.in; });
}

template <class T>
struct PlaneSum {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, int64_t n, double* total) {
    *total = sum_of_terms<opmath<T>>(n, [=](int64_t i) CRESSET_TERM { return static_cast<opmath<T>>(x[i]); });
  }
};

template <class T>
void mean_plane(const Axes& a, const Divisor& by, const T* x, T* y) {
  using M = opmath<T>;
  const Axis& w = a[2];
  if (is_one_window(a)) {
    if constexpr (is_real_floating<T>) {
      double total;
      run_vectorized_256<PlaneSum<T>>(x, a[0].in * a[1].in * w.in, &total);
      *y = T(divided(static_cast<M>(total), divisor_of(a, by, 0, 0, 0)));
      return;
    }
  }
  std::vector<M> sums(static_cast<size_t>(w.out));
  int64_t open = -1;
  const auto close = [&] {
    if (open < 0) return;
    const int64_t d = open / a[1].out, h = open % a[1].out;
    for (int64_t o = 0; o < w.out; ++o)
      y[open * w.out + o] = T(divided(sums[static_cast<size_t>(o)], divisor_of(a, by, d, h, o)));
  };
  for_rows(
      a,
      [&](int64_t row, int64_t, int64_t, int64_t) {
        close();
        open = row;
        std::fill(sums.begin(), sums.end(), M(0));
      },
      [&](int64_t, int64_t from) {
        const T* line = x + from * w.in;
        for (int64_t o = 0; o < w.out; ++o) {
          M s = sums[static_cast<size_t>(o)];
          for (int64_t i = w.begin[static_cast<size_t>(o)]; i < w.end[static_cast<size_t>(o)]; ++i)
            s += static_cast<M>(line[i]);
          sums[static_cast<size_t>(o)] = s;
        }
      });
  close();
}

template <class T>
void mean_plane_gradient(const Axes& a, const Divisor& by, const T* dy, T* dx) {
  using M = opmath<T>;
  const Axis& w = a[2];
  if (is_one_window(a)) {
    std::fill_n(dx, a[0].in * a[1].in * w.in, T(divided(static_cast<M>(*dy), divisor_of(a, by, 0, 0, 0))));
    return;
  }
  std::vector<M> sums(static_cast<size_t>(a[0].in * a[1].in * w.in), M(0)), shares(static_cast<size_t>(w.out));
  for_rows(
      a,
      [&](int64_t row, int64_t, int64_t d, int64_t h) {
        for (int64_t o = 0; o < w.out; ++o)
          shares[static_cast<size_t>(o)] = divided(static_cast<M>(dy[row * w.out + o]), divisor_of(a, by, d, h, o));
      },
      [&](int64_t, int64_t to) {
        M* line = sums.data() + to * w.in;
        for (int64_t o = 0; o < w.out; ++o)
          for (int64_t i = w.begin[static_cast<size_t>(o)]; i < w.end[static_cast<size_t>(o)]; ++i)
            line[i] += shares[static_cast<size_t>(o)];
      });
  for (size_t i = 0; i < sums.size(); ++i) dx[i] = T(sums[i]);
}

}  // namespace cresset
