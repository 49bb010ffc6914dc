// The tiles, the packing and the serial product, for the instruction set that the including file is compiled for.
// Everything is in an anonymous namespace: each instruction set has its own copy.
#pragma once
#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/gemm_kernels.h"

// Nothing here is fused with other operators, so products and sums may be contracted.
#pragma GCC optimize("fp-contract=fast")

namespace cresset {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;  // of a vector
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

template <class T>
struct Tile {
  int64_t k;
  const T* a;
  int64_t a_line, a_k;
  const T* b;
  int64_t b_k;
  T* c;
  int64_t c_row;
  const T* start;
  int64_t start_row;
  const T* row_start;
  T alpha, beta;
  const T* ahead;  // what Fetches::ahead fetches
};

constexpr int64_t kCacheLine = 64;  // bytes

// What a tile fetches into the cache while it is computed, besides its own lines of a: nothing; the rows of b that come
// next, where a panel of b is larger than the first level; a line of `ahead` with each k, for later.
enum class Fetches { nothing, b, ahead };

// What the next product of a batch reads and writes, as far as it lies in one piece and fits the second level beside
// this one's.
template <class T>
class Ahead {
 public:
  explicit Ahead(const Product<T>& p) {
    const Product<T>* const next = p.next;
    if (!next || (p.m * p.k + p.k * p.n + p.m * p.n) * static_cast<int64_t>(sizeof(T)) > second_level_cache() / 4)
      return;
    if (next->a.data != p.a.data && in_one_piece(next->a, p.m, p.k)) add(next->a.data, p.m * p.k);
    if (next->b.data != p.b.data && in_one_piece(next->b, p.n, p.k)) add(next->b.data, p.k * p.n);
    if (next->c_row == p.n) add(next->c, p.m * p.n);
  }
  // The next `lines` lines of the cache; null: all have been taken.
  const T* take(int64_t lines) {
    if (piece_ == pieces_) return nullptr;
    const T* const begin = from_[piece_];
    from_[piece_] += lines * (kCacheLine / static_cast<int64_t>(sizeof(T)));
    if (from_[piece_] >= to_[piece_]) ++piece_;
    return begin;
  }

 private:
  static bool in_one_piece(const Factor<T>& f, int64_t lines, int64_t k) {
    return !f.pack && ((f.k_step == 1 && f.line_step == k) || (f.line_step == 1 && f.k_step == lines));
  }
  void add(const T* data, int64_t size) {
    from_[pieces_] = data;
    to_[pieces_++] = data + size;
  }
  const T *from_[3], *to_[3];
  int piece_ = 0, pieces_ = 0;
};

template <class T>
struct Kernels {
  // The sums of a tile, a row of b and an element of a just fit the registers.
  static constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  static constexpr int kRows = kBytes == 64 ? 8 : 4;
  static constexpr int kVectors = 3;
  static constexpr int kColumns = kVectors * kLanes;
  typedef T Vector __attribute__((vector_size(kBytes)));
  typedef T Loose __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));

  // With CRESSET_PAIRS (gemm_pairs_avx512.cpp) each float stands for two bfloat16 numbers that follow each other along
  // k.
#ifdef CRESSET_PAIRS
  template <class X>  // a vector, or a pair that counts for all; by value, for what lies in memory is not aligned
  [[gnu::always_inline]] static void add_product(Vector& sum, X x, Vector y) {
    __m512 all;
    if constexpr (sizeof(X) == sizeof(T))
      all = _mm512_set1_ps(x);
    else
      all = (__m512)x;
    sum = (Vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)all, (__m512bh)y);
  }
  static T product_of(T x, T y) {
    const auto a = __builtin_bit_cast(uint32_t, x), b = __builtin_bit_cast(uint32_t, y);
    const auto half = [](uint32_t bits) { return __builtin_bit_cast(float, bits); };
    return half(a << 16) * half(b << 16) + half(a & 0xffff0000u) * half(b & 0xffff0000u);
  }
#else
  template <class X>
  [[gnu::always_inline]] static void add_product(Vector& sum, X x, Vector y) {
    sum += x * y;
  }
  static T product_of(T x, T y) { return x * y; }
#endif

  static const Loose& at(const T* p) { return *reinterpret_cast<const Loose*>(p); }
  static Loose& at(T* p) { return *reinterpret_cast<Loose*>(p); }

  // ---- tiles

  // R rows by V vectors of c. kSideBySide: so lie the lines of a, in a panel or as they are.
  template <int R, int V, bool kSideBySide, Fetches kFetches = Fetches::nothing>
  static void tile(const Tile<T>& t) {
    Vector sums[R][V] = {};
    const int64_t line = kSideBySide ? 1 : t.a_line, step = t.a_k, b_step = t.b_k;
    const T *a = t.a, *b = t.b;
    const T* ahead = kFetches == Fetches::b ? b + 4 * b_step : t.ahead;
    constexpr int64_t kLine = kCacheLine / static_cast<int64_t>(sizeof(T));
    if (t.start)
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) __builtin_prefetch(t.start + i * t.start_row + j * kLanes);
    for (int64_t p = t.k; p > 0; --p, a += step, b += b_step) {
      if (kSideBySide) __builtin_prefetch(a + 16 * step);
      if (kFetches == Fetches::b) {
#pragma GCC unroll 8
        for (int64_t j = 0; j < V * kLanes; j += kLine) __builtin_prefetch(ahead + j);
        ahead += b_step;
      }
      if (kFetches == Fetches::ahead) __builtin_prefetch(ahead, 0, 2), ahead += kLine;
      Vector row[V];
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) row[j] = at(b + j * kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) add_product(sums[i][j], a[i * line], row[j]);
    }
    const T alpha = t.alpha, beta = t.beta;
    T* c = t.c;
    const T* start = t.start;
    if (t.row_start) {
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) at(c + i * t.c_row + j * kLanes) = alpha * sums[i][j] + t.row_start[i];
    } else if (start) {
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j)
          at(c + i * t.c_row + j * kLanes) = alpha * sums[i][j] + beta * at(start + i * t.start_row + j * kLanes);
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) at(c + i * t.c_row + j * kLanes) = alpha * sums[i][j];
    }
  }

  using TileFunction = void (*)(const Tile<T>&);
  template <int V, bool kSideBySide, int... R>
  static TileFunction choose(int64_t rows, std::integer_sequence<int, R...>) {
    static constexpr TileFunction table[] = {tile<R + 1, V, kSideBySide>...};
    return table[rows - 1];
  }
  template <bool kSideBySide>
  static TileFunction choose(int64_t rows, int64_t columns) {
    constexpr auto all_rows = std::make_integer_sequence<int, kRows>();
    if (columns > 2 * kLanes) return choose<3, kSideBySide>(rows, all_rows);
    if (columns > kLanes) return choose<2, kSideBySide>(rows, all_rows);
    return choose<1, kSideBySide>(rows, all_rows);
  }

  template <bool kSideBySide>
  static void any_tile(const Tile<T>& t, int64_t rows, int64_t columns) {
    const TileFunction compute = choose<kSideBySide>(rows, columns);
    if (columns % kLanes == 0) return compute(t);
    // Fewer columns than the vectors hold: by way of a buffer. b has been padded.
    alignas(64) T buffer[kRows * kColumns];
    Tile<T> u = t;
    u.c = buffer;
    u.c_row = kColumns;
    u.start = nullptr;
    compute(u);  // row_start is added here
    for (int64_t i = 0; i < rows; ++i) {
      T* c = t.c + i * t.c_row;
      const T* sum = buffer + i * kColumns;
      if (t.start) {
        const T* start = t.start + i * t.start_row;
        for (int64_t j = 0; j < columns; ++j) c[j] = sum[j] + t.beta * start[j];
      } else {
        std::memcpy(c, sum, static_cast<size_t>(columns) * sizeof(T));
      }
    }
  }

  template <bool kSideBySide>
  static void next_tile(Tile<T>& t, int64_t rows, int64_t columns, bool b_passes_by, Ahead<T>& ahead) {
    if (rows < kRows || columns < kColumns) return any_tile<kSideBySide>(t, rows, columns);
    if (b_passes_by) return tile<kRows, kVectors, kSideBySide, Fetches::b>(t);
    t.ahead = ahead.take(t.k);
    if (t.ahead) return tile<kRows, kVectors, kSideBySide, Fetches::ahead>(t);
    tile<kRows, kVectors, kSideBySide>(t);
  }

  // ---- packing

  template <int S>
  struct Square {
    typedef T Row __attribute__((vector_size(S * sizeof(T))));
    typedef T LooseRow __attribute__((vector_size(S * sizeof(T)), aligned(alignof(T)), may_alias));

    template <int H, int... I>
    [[gnu::always_inline]] static void exchange(Row& a, Row& b, std::integer_sequence<int, I...>) {
      const Row low = __builtin_shufflevector(a, b, ((I & H) ? S + I - H : I)...);
      const Row high = __builtin_shufflevector(a, b, ((I & H) ? S + I : I + H)...);
      a = low;
      b = high;
    }
    // Swaps the off-diagonal quarters, then does the same inside the quarters.
    template <int H>
    [[gnu::always_inline]] static void transpose(Row (&x)[S]) {
      if constexpr (H > 0) {
#pragma GCC unroll 16
        for (int i = 0; i < S; ++i)
          if (!(i & H)) exchange<H>(x[i], x[i + H], std::make_integer_sequence<int, S>());
        transpose<H / 2>(x);
      }
    }
    static void copy(T* to, int64_t to_step, const T* from, int64_t from_step) {
      Row x[S];
#pragma GCC unroll 16
      for (int i = 0; i < S; ++i) x[i] = *reinterpret_cast<const LooseRow*>(from + i * from_step);
      transpose<S / 2>(x);
#pragma GCC unroll 16
      for (int i = 0; i < S; ++i) *reinterpret_cast<LooseRow*>(to + i * to_step) = x[i];
    }
  };

  // Lines first to first + count of f, from k0 on, as a panel of W lines.
  template <int W>
  static void pack(const Factor<T>& f, T* panel, int64_t first, int64_t count, int64_t k0, int64_t length) {
    if (f.pack) return f.pack(f.context, panel, W, f.first + first, count, f.k_first + k0, length);
    const T* from = f.data + first * f.line_step + k0 * f.k_step;
    if (f.line_step == 1 && count == W) {
      for (int64_t p = 0; p < length; ++p) std::memcpy(panel + p * W, from + p * f.k_step, W * sizeof(T));
      return;
    }
    if (f.k_step == 1) {
      constexpr int S = W < kLanes ? W : kLanes;
      const int64_t squares = length / S * S;
      int64_t i = 0;
      for (; i + S <= count; i += S) {
        for (int64_t p = 0; p < squares; p += S)
          Square<S>::copy(panel + p * W + i, W, from + i * f.line_step + p, f.line_step);
        for (int64_t p = squares; p < length; ++p)
          for (int64_t j = i; j < i + S; ++j) panel[p * W + j] = from[j * f.line_step + p];
      }
      for (; i < count; ++i)
        for (int64_t p = 0; p < length; ++p) panel[p * W + i] = from[i * f.line_step + p];
    } else {
      for (int64_t p = 0; p < length; ++p)
        for (int64_t i = 0; i < count; ++i) panel[p * W + i] = from[i * f.line_step + p * f.k_step];
    }
    if (count < W)
      for (int64_t p = 0; p < length; ++p)
        for (int64_t i = count; i < W; ++i) panel[p * W + i] = 0;
  }

  // As many panels of W lines as fit [first, first + count), eight at a time, where the lines lie side by side: so that
  // memory is read in whole rows. Gives the number of lines that were packed.
  template <int W>
  static int64_t pack_side_by_side(const Factor<T>& f, T* panels, int64_t first, int64_t count, int64_t k0,
                                   int64_t length) {
    if (f.pack || f.line_step != 1) return 0;
    constexpr int kTogether = 8;
    int64_t i = 0;
    for (; i + kTogether * W <= count; i += kTogether * W)
      for (int64_t p = 0; p < length; ++p)
        for (int g = 0; g < kTogether; ++g)
          std::memcpy(panels + (i + g * W) * length + p * W, f.data + first + i + g * W + (k0 + p) * f.k_step,
                      W * sizeof(T));
    return i;
  }
  // All panels of columns [first, first + count) of b.
  static void pack_columns(const Factor<T>& b, T* panels, int64_t first, int64_t count, int64_t k0, int64_t length) {
    for (int64_t j = pack_side_by_side<kColumns>(b, panels, first, count, k0, length); j < count; j += kColumns)
      pack_panel(b, panels + j * length, first + j, std::min<int64_t>(kColumns, count - j), k0, length);
  }
  // All panels of rows [first, first + count) of a.
  static void pack_lines(const Factor<T>& a, T* panels, int64_t first, int64_t count, int64_t k0, int64_t length) {
    for (int64_t i = pack_side_by_side<kRows>(a, panels, first, count, k0, length); i < count; i += kRows)
      pack<kRows>(a, panels + i * length, first + i, std::min<int64_t>(kRows, count - i), k0, length);
  }
  // A panel of b is as many vectors wide as its columns need.
  static int64_t panel_width(int64_t columns) { return (columns + kLanes - 1) / kLanes * kLanes; }
  static void pack_panel(const Factor<T>& b, T* panel, int64_t first, int64_t count, int64_t k0, int64_t length) {
    if (count > 2 * kLanes) return pack<3 * kLanes>(b, panel, first, count, k0, length);
    if (count > kLanes) return pack<2 * kLanes>(b, panel, first, count, k0, length);
    pack<kLanes>(b, panel, first, count, k0, length);
  }

  // ---- products with few lines on one side

  // The sum of a vector's numbers, by halves.
  template <int W>
  struct Part {
    typedef T Row __attribute__((vector_size(W * sizeof(T))));
    template <int... I>
    [[gnu::always_inline]] static T sum(const Row& v, std::integer_sequence<int, I...>) {
      const typename Part<W / 2>::Row low = __builtin_shufflevector(v, v, I...),
                                      high = __builtin_shufflevector(v, v, (I + W / 2)...);
      return Part<W / 2>::sum(low + high);
    }
    [[gnu::always_inline]] static T sum(const Row& v) {
      if constexpr (W == 2)
        return v[0] + v[1];
      else
        return sum(v, std::make_integer_sequence<int, W / 2>());
    }
  };
  [[gnu::always_inline]] static T sum(const Vector& v) { return Part<kLanes>::sum(v); }

  // The products of R lines of x with L lines of y, all of them contiguous along k.
  template <int R, int L>
  static void dots(int64_t k, const T* x, int64_t x_line, const T* y, int64_t y_line, T* out) {
    Vector sums[R][L] = {};
    int64_t p = 0;
    for (; p + kLanes <= k; p += kLanes) {
      Vector row[L];
#pragma GCC unroll 8
      for (int j = 0; j < L; ++j) row[j] = at(y + j * y_line + p);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        const Vector v = at(x + i * x_line + p);
#pragma GCC unroll 8
        for (int j = 0; j < L; ++j) add_product(sums[i][j], v, row[j]);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < L; ++j) out[i * L + j] = sum(sums[i][j]);
    for (; p < k; ++p)
      for (int i = 0; i < R; ++i)
        for (int j = 0; j < L; ++j) out[i * L + j] += product_of(x[i * x_line + p], y[j * y_line + p]);
  }
  // One product of two long lines.
  static T dot(int64_t k, const T* x, const T* y) {
    Vector sums[8] = {};
    int64_t p = 0;
    for (; p + 8 * kLanes <= k; p += 8 * kLanes)
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) add_product(sums[j], Vector(at(x + p + j * kLanes)), Vector(at(y + p + j * kLanes)));
    for (; p + kLanes <= k; p += kLanes) add_product(sums[0], Vector(at(x + p)), Vector(at(y + p)));
    T s = sum(((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])));
    for (; p < k; ++p) s += product_of(x[p], y[p]);
    return s;
  }

  // Few lines (at most kFewLines) times many, all contiguous along k: x are the few.
  struct Few {
    int64_t lines_x, lines_y, k;
    Factor<T> x, y;
    T* c;
    int64_t c_x, c_y;
    const T* start;
    int64_t start_x, start_y;
    T alpha, beta;
    void put(int64_t i, int64_t j, T value) const {
      c[i * c_x + j * c_y] = start ? alpha * value + beta * start[i * start_x + j * start_y] : alpha * value;
    }
  };
  template <int R>
  static void few(const Few& f) {
    constexpr int L = R == 1 ? 8 : 4;
    const T *x = f.x.data, *y = f.y.data;
    const int64_t x_line = f.x.line_step, y_line = f.y.line_step;
    T out[R * L];
    int64_t j = 0;
    for (; j + L <= f.lines_y; j += L) {
      dots<R, L>(f.k, x, x_line, y + j * y_line, y_line, out);
      for (int i = 0; i < R; ++i)
        for (int l = 0; l < L; ++l) f.put(i, j + l, out[i * L + l]);
    }
    for (; j < f.lines_y; ++j) {
      dots<R, 1>(f.k, x, x_line, y + j * y_line, y_line, out);
      for (int i = 0; i < R; ++i) f.put(i, j, out[i]);
    }
  }
  // More lines than one block of sums has: a few lines of y at a time, which stay in the cache for all lines of x.
  template <int R, int L>
  static void few_block(const Few& f, int64_t i, int64_t j) {
    T out[R * L];
    dots<R, L>(f.k, f.x.data + i * f.x.line_step, f.x.line_step, f.y.data + j * f.y.line_step, f.y.line_step, out);
    for (int a = 0; a < R; ++a)
      for (int b = 0; b < L; ++b) f.put(i + a, j + b, out[a * L + b]);
  }
  template <int L, int... R>
  static void few_blocks(const Few& f, int64_t j, std::integer_sequence<int, R...>) {
    using Block = void (*)(const Few&, int64_t, int64_t);
    static constexpr Block table[] = {few_block<R + 1, L>...};
    for (int64_t i = 0; i < f.lines_x; i += 8) table[std::min<int64_t>(8, f.lines_x - i) - 1](f, i, j);
  }
  static void several(const Few& f) {
    constexpr int L = kBytes == 64 ? 3 : 1;
    constexpr auto all_rows = std::make_integer_sequence<int, 8>();
    int64_t j = 0;
    for (; j + L <= f.lines_y; j += L) few_blocks<L>(f, j, all_rows);
    for (; j < f.lines_y; ++j) few_blocks<1>(f, j, all_rows);
  }

  static void few_lines(const Product<T>& p) {
    Few f{p.n, p.m, p.k, p.b, p.a, p.c, 1, p.c_row, p.start, 1, p.start_row, p.alpha, p.beta};
    if (p.m <= p.n) f = {p.m, p.n, p.k, p.a, p.b, p.c, p.c_row, 1, p.start, p.start_row, 1, p.alpha, p.beta};
    if (f.lines_x == 1 && f.lines_y == 1) return f.put(0, 0, dot(f.k, f.x.data, f.y.data));
    switch (f.lines_x) {
      case 1: return few<1>(f);
      case 2: return few<2>(f);
      case 3: return few<3>(f);
      case 4: return few<4>(f);
      default: return several(f);
    }
  }

  // One line times many that lie side by side: wide tiles of one row.
  static void one_line(const Product<T>& p) {
    const bool row = p.m == 1;
    const Factor<T>&x = row ? p.a : p.b, &y = row ? p.b : p.a;
    const int64_t lines = row ? p.n : p.m, whole = lines / kLanes * kLanes;
    constexpr int64_t kShortBlockK = 64;  // few pages of y at a time
    for (int64_t pc = 0; pc < p.k; pc += kShortBlockK) {
      Tile<T> t{std::min(kShortBlockK, p.k - pc),
                x.data + pc * x.k_step,
                0,
                x.k_step,
                nullptr,
                y.k_step,
                nullptr,
                0,
                nullptr,
                0,
                nullptr,
                p.alpha,
                pc ? T(1) : p.beta};
      const T* start = pc ? p.c : p.start;
      int64_t j = 0;
      const auto next = [&](TileFunction compute, int vectors) {
        for (; j + vectors * kLanes <= whole; j += vectors * kLanes) {
          t.b = y.data + j + pc * y.k_step;
          t.c = p.c + j;
          t.start = start ? start + j : nullptr;
          compute(t);
        }
      };
      next(tile<1, 8, false>, 8);
      next(tile<1, 1, false>, 1);
      for (; j < lines; ++j) {
        T s = 0;
        for (int64_t i = pc; i < pc + t.k; ++i) s += product_of(x.data[i * x.k_step], y.data[j + i * y.k_step]);
        p.c[j] = start ? p.alpha * s + t.beta * start[j] : p.alpha * s;
      }
    }
  }

  static void pack_rows(const Factor<T>& a, int64_t m, int64_t k, T* to) {
    for (int64_t pc = 0; pc < k; pc += kBlockK) {
      const int64_t kc = std::min(kBlockK, k - pc);
      pack_lines(a, to, 0, m, pc, kc);
      to += (m + kRows - 1) / kRows * kRows * kc;
    }
  }

  // ---- a whole product

  static void tiles(const Product<T>& p) {
    const int64_t m = p.m, n = p.n, k = p.k;
    const int64_t block_k = std::min(k, kBlockK), block_n = std::min(n, kBlockN);
    const int64_t block_m =
        std::min(m, std::max<int64_t>(
                        second_level_cache() / 2 / (block_k * static_cast<int64_t>(sizeof(T))) / kRows * kRows, kRows));
    const int64_t column_bytes = block_k * static_cast<int64_t>(sizeof(T));
    const bool passes_by = kColumns * column_bytes > first_level_cache();
    const int64_t strip =
        passes_by ? std::max<int64_t>(second_level_cache() * 3 / 8 / column_bytes / kColumns, 1) * kColumns : kColumns;
    // A factor that is read once, or stays in the cache as it lies, is not worth packing. Nor are lines along k, or
    // side by side with less than a page from one k to the next, unless the other factor has so many lines that packing
    // costs nothing. That is earlier where the vectors of b lie across the cache's lines.
    const auto lies_well = [](const Factor<T>& f, int64_t others, bool is_a) {
      const int64_t step = f.k_step * static_cast<int64_t>(sizeof(T));
      const bool near = f.line_step == 1 && step < kPage;
      const bool whole_lines = is_a || (step % kBytes == 0 && reinterpret_cast<uintptr_t>(f.data) % kBytes == 0);
      return !f.pack && others <= (whole_lines ? kManyLines : kManyLines / 5) && (near || (is_a && f.k_step == 1));
    };
    const bool pack_a = !p.a.packed && (p.a.pack || (!lies_well(p.a, n, true) && n > kColumns && m * block_k > 4096));
    const bool pack_b =
        p.b.pack || p.b.line_step != 1 || (!lies_well(p.b, m, false) && m > 4 * kRows && n * block_k > 4096);
    const int64_t panels_b = pack_b ? (block_n + kColumns - 1) / kColumns : 1,
                  panels_a = pack_a ? (block_m + kRows - 1) / kRows : 0;
    T *packed_b = nullptr, *packed_a = nullptr;
    if (pack_a || pack_b || n % kLanes != 0) {
      packed_b = panel_scratch().take<T>((panels_b * kColumns + panels_a * kRows) * block_k);
      packed_a = packed_b + panels_b * kColumns * block_k;
    }
    const int64_t whole_rows = (m + kRows - 1) / kRows * kRows;
    Ahead<T> ahead(p);
    Tile<T> t;
    t.alpha = p.alpha;
    t.a_line = p.a.line_step;
    t.a_k = pack_a || p.a.packed ? kRows : p.a.k_step;
    t.c_row = p.c_row;
    for (int64_t jc = 0; jc < n; jc += block_n) {
      const int64_t nc = std::min(block_n, n - jc);
      for (int64_t pc = 0; pc < k; pc += block_k) {
        const int64_t kc = std::min(block_k, k - pc);
        t.k = kc;
        t.beta = pc ? T(1) : p.beta;
        t.start_row = pc ? p.c_row : p.start_row;
        if (pack_b)
          pack_columns(p.b, packed_b, jc, nc, pc, kc);
        else if (nc % kLanes != 0)
          pack_panel(p.b, packed_b, jc + nc / kColumns * kColumns, nc % kColumns, pc, kc);
        for (int64_t ic = 0; ic < m; ic += block_m) {
          const int64_t mc = std::min(block_m, m - ic);
          if (pack_a) pack_lines(p.a, packed_a, ic, mc, pc, kc);
          // The rows' panel stays in the first level while the columns of a strip, which stays in the second, pass by.
          for (int64_t js = 0; js < nc; js += strip) {
            const int64_t strip_end = std::min(nc, js + strip);
            for (int64_t i = 0; i < mc; i += kRows) {
              const int64_t rows = std::min<int64_t>(kRows, mc - i);
              const bool side_by_side = pack_a || p.a.packed || t.a_line == 1;
              t.a = pack_a       ? packed_a + i * kc
                    : p.a.packed ? p.a.data + pc * whole_rows + (ic + i) * kc
                                 : p.a.data + (ic + i) * t.a_line + pc * t.a_k;
              t.row_start = pc || !p.row_start ? nullptr : p.row_start + ic + i;
              for (int64_t j = js; j < strip_end; j += kColumns) {
                const int64_t columns = std::min<int64_t>(kColumns, nc - j);
                const bool as_it_lies = !pack_b && columns % kLanes == 0;
                t.b = as_it_lies ? p.b.data + (jc + j) + pc * p.b.k_step : pack_b ? packed_b + j * kc : packed_b;
                t.b_k = as_it_lies ? p.b.k_step : panel_width(columns);
                t.c = p.c + (ic + i) * p.c_row + jc + j;
                t.start = pc ? t.c : p.start ? p.start + (ic + i) * p.start_row + jc + j : nullptr;
                side_by_side ? next_tile<true>(t, rows, columns, passes_by, ahead)
                             : next_tile<false>(t, rows, columns, passes_by, ahead);
              }
            }
          }
        }
      }
    }
  }
};

}  // namespace
}  // namespace cresset
