// Tiles of convolutions by the definition, for the instruction set that the including file is compiled for: see Note
// [Sums over stretches] in convolution_direct.h. Everything is in an anonymous namespace: each instruction set has its
// own copy.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "ops/convolution_direct.h"
#include "ops/convolution_lanes.h"

namespace cresset {
namespace {

constexpr int kTogether = 8;  // points, or taps, of vectors that are multiplied as they lie

// The first channels of a vector; none, if `valid` is not positive.
void put(float* to, const Vector& v, int64_t valid, bool adds) {
  if (valid == kLanes) {
    at(to) = adds ? Vector(at(to)) + v : v;
    return;
  }
  float values[kLanes];
  std::memcpy(values, &v, sizeof values);
  for (int64_t i = 0; i < valid; ++i) to[i] = adds ? to[i] + values[i] : values[i];
}

// Calls f(first, length) for pieces of nearly the same length, at most `most`.
template <class F>
void for_pieces(int64_t n, int64_t most, const F& f) {
  const int64_t pieces = (n + most - 1) / most;
  for (int64_t i = 0; i < pieces; ++i) f(n * i / pieces, n * (i + 1) / pieces - n * i / pieces);
}

template <int R, int V>
void row_tile(const DirectRow& r, int64_t point) {
  Vector sums[R][V] = {};
  const int64_t line = r.from_step;
  const float *const from = r.from + point * line, *b = r.filter;
  for (const Stretch* s = r.first; s != r.last; ++s) {
    const float* a = from + s->offset;
    for (int64_t p = s->length; p > 0; --p, ++a, b += V * kLanes) {
      Vector row[V];
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) row[j] = at(b + j * kLanes);
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < V; ++j) sums[i][j] += a[i * line] * row[j];
    }
  }
  if (r.bias)
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) sums[i][j] += at(r.bias + j * kLanes);
  float* const to = r.to + point * r.to_step;
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j)
      put(to + i * r.to_step + j * kLanes, sums[i][j], std::min<int64_t>(kLanes, r.channels - j * kLanes), r.adds);
}

template <int R, int V>
void sums_tile(const DirectSums& s, int64_t line) {
  Vector sums[R][V] = {};
  const float* b = s.grad;
  for (int64_t h = 0; h < s.rows; ++h) {
    const float* a = s.from + h * s.from_row + line;
    for (int64_t p = s.points; p > 0; --p, a += s.from_step, b += V * kLanes) {
      Vector row[V];
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) row[j] = at(b + j * kLanes);
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < V; ++j) sums[i][j] += a[i] * row[j];
    }
  }
  float* const to = s.to + line * V * kLanes;
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) at(to + (i * V + j) * kLanes) = at(to + (i * V + j) * kLanes) + sums[i][j];
}

template <int V, int... R>
constexpr auto row_table(std::integer_sequence<int, R...>) {
  return std::array{row_tile<R + 1, V>...};
}
template <int V, int... R>
constexpr auto sums_table(std::integer_sequence<int, R...>) {
  return std::array{sums_tile<R + 1, V>...};
}
// f(V) with the number of vectors as a constant.
template <class F>
void with_vectors(int64_t vectors, const F& f) {
  if (vectors == 1) return f(std::integral_constant<int, 1>());
  if (vectors == 2) return f(std::integral_constant<int, 2>());
  if constexpr (kMostVectors == 4) {
    if (vectors == 3) return f(std::integral_constant<int, 3>());
    return f(std::integral_constant<int, 4>());
  }
}

void direct_row(const DirectRow& r) {
  with_vectors(r.vectors, [&](auto vectors) {
    constexpr int V = vectors();
    static constexpr auto table = row_table<V>(std::make_integer_sequence<int, rows_for(V)>());
    for_pieces(r.points, rows_for(V),
               [&](int64_t first, int64_t count) { table[static_cast<size_t>(count - 1)](r, first); });
  });
}

void direct_sums(const DirectSums& s) {
  with_vectors(s.vectors, [&](auto vectors) {
    constexpr int V = vectors();
    static constexpr auto table = sums_table<V>(std::make_integer_sequence<int, rows_for(V)>());
    for_pieces(s.lines, rows_for(V),
               [&](int64_t first, int64_t count) { table[static_cast<size_t>(count - 1)](s, first); });
  });
}

// ---- channels that have a filter each

template <int R>
void channels_tile(const DirectChannels& r, int64_t row, int64_t point, int64_t channel) {
  Vector sums[R] = {};
  const float *const from = r.from + row * r.from_row + point * r.from_step + channel, *w = r.filter + channel;
  for (const Stretch* s = r.first; s != r.last; ++s, w += r.whole) {
    const Vector factor = at(w);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) sums[i] += at(from + s->offset + i * r.from_step) * factor;
  }
  const Vector add = r.bias ? Vector(at(r.bias + channel)) : Vector{};
  float* const to = r.to + row * r.to_row + point * r.to_step + channel;
  const int64_t valid = std::min<int64_t>(kLanes, r.channels - channel);
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) put(to + i * r.to_step, sums[i] + add, valid, false);
}

template <int R>
void channel_sums_tile(const DirectChannels& s, int64_t tap, int64_t channel) {
  Vector sums[R] = {};
  const float* grad = s.grad + channel;
  for (int64_t h = 0; h < s.rows; ++h) {
    const float* from = s.from + h * s.from_row + channel;
    for (int64_t p = s.points; p > 0; --p, from += s.from_step, grad += s.whole) {
      const Vector factor = at(grad);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) sums[i] += at(from + s.first[tap + i].offset) * factor;
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
    at(s.to + (tap + i) * s.whole + channel) = at(s.to + (tap + i) * s.whole + channel) + sums[i];
}

template <int... R>
constexpr auto channels_table(std::integer_sequence<int, R...>) {
  return std::array{channels_tile<R + 1>...};
}
template <int... R>
constexpr auto channel_sums_table(std::integer_sequence<int, R...>) {
  return std::array{channel_sums_tile<R + 1>...};
}

void direct_channels(const DirectChannels& r) {
  static constexpr auto table = channels_table(std::make_integer_sequence<int, kTogether>());
  for (int64_t h = 0; h < r.rows; ++h)
    for (int64_t c = 0; c < r.channels; c += kLanes)
      for_pieces(r.points, kTogether,
                 [&](int64_t first, int64_t count) { table[static_cast<size_t>(count - 1)](r, h, first, c); });
}

void direct_channel_sums(const DirectChannels& s) {
  static constexpr auto table = channel_sums_table(std::make_integer_sequence<int, kTogether>());
  for (int64_t c = 0; c < s.whole; c += kLanes)
    for_pieces(s.last - s.first, kTogether,
               [&](int64_t first, int64_t count) { table[static_cast<size_t>(count - 1)](s, first, c); });
}

constexpr DirectKernels kDirectKernels = {kLanes,      kMostVectors,    direct_row,
                                          direct_sums, direct_channels, direct_channel_sums};

}  // namespace
}  // namespace cresset
