// The blocks of attention, for the instruction set that the including file is compiled for: see Note [How attention is
// computed] in attention.h. Everything is in an anonymous namespace: each instruction set has its own copy.
#pragma once
#include <cmath>
#include <limits>

#include "ops/attention.h"
#include "ops/gemm_tiles.h"
#include "ops/vector_functions.h"

namespace cresset {
namespace {

template <class C>
struct AttentionBlocks : Kernels<C> {
  using Problem = AttentionProblem<C>;
  using typename Kernels<C>::Vector;
  using Kernels<C>::kLanes, Kernels<C>::kRows, Kernels<C>::kColumns, Kernels<C>::at;
  static constexpr int64_t kQueries = Problem::kQueries, kKeys = Problem::kKeys;
  static constexpr C kInfinity = std::numeric_limits<C>::infinity();
  static_assert(kKeys % kColumns == 0);

  static int64_t padded(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }
  static int64_t panels_size(int64_t lines, int64_t k) { return (lines + kColumns - 1) / kColumns * kColumns * k; }

  // ---- reading and writing rows of any dtype

  template <class T>
  static void load_as(const char* from, int64_t row, int64_t step, int64_t rows, int64_t n, C* to, int64_t to_row) {
    const T* x = reinterpret_cast<const T*>(from);
    for (int64_t i = 0; i < rows; ++i, x += row, to += to_row) {
      if (step == 1)
        for (int64_t j = 0; j < n; ++j) to[j] = static_cast<C>(static_cast<opmath<T>>(x[j]));
      else
        for (int64_t j = 0; j < n; ++j) to[j] = static_cast<C>(static_cast<opmath<T>>(x[j * step]));
      for (int64_t j = n; j < to_row; ++j) to[j] = 0;
    }
  }
  static void load(const HeadRows& r, int64_t head, int64_t first, int64_t rows, int64_t n, C* to, int64_t to_row) {
    const auto as = r.dtype == Dtype::f32    ? load_as<float>
                    : r.dtype == Dtype::f64  ? load_as<double>
                    : r.dtype == Dtype::bf16 ? load_as<BFloat16>
                                             : load_as<Half>;
    as(r.at(head, first), r.row, r.step, rows, n, to, to_row);
  }
  template <class T>
  static void store_as(char* to, int64_t row, const C* from, int64_t from_row, int64_t rows, int64_t n) {
    T* x = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j) x[i * row + j] = T(static_cast<opmath<T>>(from[i * from_row + j]));
  }
  static void store(const HeadRows& r, int64_t head, int64_t first, int64_t rows, int64_t n, const C* from,
                    int64_t from_row) {
    const auto as = r.dtype == Dtype::f32    ? store_as<float>
                    : r.dtype == Dtype::f64  ? store_as<double>
                    : r.dtype == Dtype::bf16 ? store_as<BFloat16>
                                             : store_as<Half>;
    as(r.at(head, first), r.row, from, from_row, rows, n);
  }

  // Rows as the tiles read them: contiguous, whole vectors wide.
  struct Matrix {
    const C* data;
    int64_t row;
  };
  static bool lies_well(const HeadRows& r, int64_t n) {
    return r.dtype == dtype_of<C> && r.step == 1 && n % kLanes == 0;
  }
  static int64_t copy_size(const HeadRows& r, int64_t rows, int64_t n) {
    return lies_well(r, n) ? 0 : rows * padded(n);
  }
  static Matrix matrix(const HeadRows& r, int64_t head, int64_t first, int64_t rows, int64_t n, C* copy) {
    if (lies_well(r, n)) return {reinterpret_cast<const C*>(r.at(head, first)), r.row};
    load(r, head, first, rows, n, copy, padded(n));
    return {copy, padded(n)};
  }
  // The transpose of some rows, as panels of kColumns lines.
  static void pack_transposed(Matrix rows, int64_t lines, int64_t k, C* panels) {
    Factor<C> f;
    f.data = rows.data, f.line_step = rows.row, f.k_step = 1;
    for (int64_t j = 0; j < lines; j += kColumns)
      Kernels<C>::template pack<kColumns>(f, panels + j * k, j, std::min<int64_t>(kColumns, lines - j), 0, k);
  }

  // A piece of scratch memory, given out in parts.
  struct Parts {
    C* next;
    C* take(int64_t n) {
      C* p = next;
      next += size(n);
      return p;
    }
    static int64_t size(int64_t n) { return (n + 63) / 64 * 64; }
  };
  template <class... N>
  static Parts scratch(N... sizes) {
    return {panel_scratch().take<C>((Parts::size(sizes) + ...))};
  }

  // ---- products

  struct Left {
    const C* data;
    int64_t line, k;  // steps
  };
  // c (rows, columns) = alpha a b, or added to c. columns are whole vectors. depth(i, r) is how much of k the tile of
  // rows [i, i + r) sums.
  template <class Depth>
  static void multiply(int64_t rows, int64_t columns, Left a, Matrix b, C* c, int64_t c_row, bool add, C alpha,
                       Depth depth) {
    Tile<C> t{};
    t.a_line = a.line, t.a_k = a.k, t.b_k = b.row, t.c_row = t.start_row = c_row, t.alpha = alpha, t.beta = 1;
    const int64_t vectors = columns / kLanes, strips = (vectors + 2) / 3;
    for (int64_t strip = 0; strip < strips; ++strip) {
      const int64_t j0 = vectors * strip / strips * kLanes, j1 = vectors * (strip + 1) / strips * kLanes;
      t.b = b.data + j0;
      for (int64_t i = 0; i < rows; i += kRows) {
        const int64_t r = std::min<int64_t>(kRows, rows - i);
        t.k = depth(i, r);
        if (t.k <= 0) continue;
        t.a = a.data + i * a.line;
        t.c = c + i * c_row + j0;
        t.start = add ? t.c : nullptr;
        Kernels<C>::template choose<false>(r, j1 - j0)(t);
      }
    }
  }
  // c = a b^T for `count` lines of b from first on (a multiple of kColumns), which are packed as panels. Tiles for
  // which skip(i, r, j) says so are left out.
  template <class Skip>
  static void multiply_panels(int64_t rows, int64_t count, int64_t k, Left a, const C* panels, int64_t first, C* c,
                              int64_t c_row, Skip skip) {
    Tile<C> t{};
    t.k = k, t.a_line = a.line, t.a_k = a.k, t.b_k = kColumns, t.c_row = c_row, t.alpha = 1;
    for (int64_t j = 0; j < count; j += kColumns) {
      t.b = panels + (first + j) * k;
      for (int64_t i = 0; i < rows; i += kRows) {
        const int64_t r = std::min<int64_t>(kRows, rows - i);
        if (skip(i, r, j)) continue;
        t.a = a.data + i * a.line;
        t.c = c + i * c_row + j;
        Kernels<C>::template choose<false>(r, std::min<int64_t>(kColumns, padded(count - j)))(t);
      }
    }
  }

  // ---- rows of scores

  static Vector counting() {
    Vector v;
    for (int i = 0; i < kLanes; ++i) v[i] = static_cast<C>(i);
    return v;
  }
  static C greatest(const Vector& v) {
    C m = v[0];
    for (int i = 1; i < kLanes; ++i) m = v[i] > m ? v[i] : m;
    return m;
  }

  // What the mask adds to scores [first, first + n) of a row.
  static void load_mask(const Problem& p, int64_t head, int64_t query, int64_t first, int64_t n, C* to) {
    const char* from = p.mask.at(head, query) + first * p.mask.step * size_of(p.mask.dtype);
    if (p.mask.dtype == Dtype::b8) {
      // Told apart by vectors where they are neighbors: a branch for each, which cannot be guessed, would take longer
      // than all the rest.
      const auto* seen = reinterpret_cast<const uint8_t*>(from);
      const C hidden[2] = {-kInfinity, C(0)};
      if (p.mask.step == 1)
        for (int64_t j = 0; j < n; ++j) to[j] = seen[j] != 0 ? C(0) : -kInfinity;
      else
        for (int64_t j = 0; j < n; ++j) to[j] = hidden[seen[j * p.mask.step] != 0];
    } else {
      const auto as = p.mask.dtype == Dtype::f32    ? load_as<float>
                      : p.mask.dtype == Dtype::f64  ? load_as<double>
                      : p.mask.dtype == Dtype::bf16 ? load_as<BFloat16>
                                                    : load_as<Half>;
      as(from, 0, p.mask.step, 1, n, to, n);
    }
  }

  // score * scale + mask - level. Forward and backward use the same words for it, so that they round alike.
  static Vector shifted(const C* scores, const C* mask, int64_t j, C scale, C level) {
    // The zero takes the place of the level in a fused step: with the level there, the product would be rounded or not
    // as the compiler likes, and backward's weights would not add up to 1.
    return (at(scores + j) * scale + (mask ? at(mask + j) : Vector{})) - level;
  }
  // The running state of a query's softmax.
  struct Row {
    C top = -kInfinity, sum = 0;
  };
  // scores [0, n) become weights relative to row.top, up to the next whole vector zeros. Returns what older sums are to
  // be multiplied by.
  static C advance(Row& row, C* scores, int64_t n, C scale, const C* mask) {
    Vector top = Vector{} - kInfinity;
    for (int64_t j = 0; j < n; j += kLanes) {
      Vector x = shifted(scores, mask, j, scale, C(0));
      if (n - j < kLanes) x = counting() < static_cast<C>(n - j) ? x : Vector{} - kInfinity;
      top = x > top ? x : top;
    }
    const C highest = std::max(row.top, greatest(top));
    const C level = highest == -kInfinity ? C(0) : highest;  // nothing seen yet: the weights become exp(-inf) = 0
    Vector sums = {};
    for (int64_t j = 0; j < n; j += kLanes) {
      Vector weight = VectorFunctions<C>::exp(shifted(scores, mask, j, scale, level));
      if (n - j < kLanes) weight = counting() < static_cast<C>(n - j) ? weight : Vector{};
      at(scores + j) = weight;
      sums += weight;
    }
    const C factor = row.top == highest ? C(1) : std::exp(row.top - level);
    row.sum = row.sum * factor + Kernels<C>::sum(sums);
    row.top = highest;
    return factor;
  }

  // A few queries are multiplied with the keys where they lie; packing them would cost more than the product.
  static bool multiplies_in_place(const Problem& p) {
    return p.queries <= kFewLines && p.key.dtype == dtype_of<C> && p.key.step == 1;
  }
  static void multiply_few(const Problem& p, int64_t shared, int64_t k0, int64_t rows, int64_t count, const C* query,
                           int64_t query_row, C* scores) {
    Product<C> product;
    product.m = rows, product.n = count, product.k = p.width;
    product.a.data = query, product.a.line_step = query_row, product.a.k_step = 1;
    product.b.data = reinterpret_cast<const C*>(p.key.at(shared, k0)), product.b.line_step = p.key.row,
    product.b.k_step = 1;
    product.c = scores, product.c_row = kKeys;
    Kernels<C>::few_lines(product);
  }

  // ---- forward

  static void forward(const Problem& p, int64_t begin, int64_t end) {
    const int64_t out_width = padded(p.value_width), blocks = p.query_blocks(),
                  rows_at_most = std::min(p.queries, kQueries);
    const bool few = multiplies_in_place(p);
    const int64_t panels_size_ = few ? 0 : panels_size(p.keys, p.width),
                  key_copy_size = few ? 0 : copy_size(p.key, p.keys, p.width),
                  value_copy_size = copy_size(p.value, p.keys, p.value_width),
                  query_copy_size = rows_at_most * padded(p.width), scores_size = rows_at_most * kKeys,
                  sums_size = rows_at_most * out_width;
    Parts parts = scratch(panels_size_, key_copy_size, value_copy_size, query_copy_size, scores_size, sums_size, kKeys);
    C *panels = parts.take(panels_size_), *key_copy = parts.take(key_copy_size),
      *value_copy = parts.take(value_copy_size), *query_copy = parts.take(query_copy_size),
      *scores = parts.take(scores_size), *sums = parts.take(sums_size), *added = parts.take(kKeys);
    int64_t last = -1;
    Matrix value{};
    for (int64_t item = begin; item < end; ++item) {
      const int64_t head = item / blocks, turn = item % blocks, shared = head / p.group;
      if (shared != last) {
        if (!few) pack_transposed(matrix(p.key, shared, 0, p.keys, p.width, key_copy), p.keys, p.width, panels);
        value = matrix(p.value, shared, 0, p.keys, p.value_width, value_copy);
        last = shared;
      }
      // With a causal mask the last blocks have the most keys: short and long ones take turns.
      const int64_t first = (turn % 2 ? blocks - 1 - turn / 2 : turn / 2) * kQueries,
                    rows = std::min(kQueries, p.queries - first);
      load(p.query, head, first, rows, p.width, query_copy, padded(p.width));
      const Left query{query_copy, padded(p.width), 1};
      Row states[kQueries];
      std::fill(sums, sums + rows * out_width, C(0));
      const int64_t seen = p.causal ? std::min(p.keys, first + rows) : p.keys;
      for (int64_t k0 = 0; k0 < seen; k0 += kKeys) {
        const int64_t count = std::min(kKeys, seen - k0);
        if (few) {
          multiply_few(p, shared, k0, rows, count, query_copy, padded(p.width), scores);
        } else {
          multiply_panels(rows, count, p.width, query, panels, k0, scores, kKeys,
                          [&](int64_t i, int64_t r, int64_t j) { return p.causal && first + i + r <= k0 + j; });
        }
        for (int64_t i = 0; i < rows; ++i) {
          C* row = scores + i * kKeys;
          const int64_t n = p.causal ? std::min(count, first + i + 1 - k0) : count;
          if (n > 0) {
            if (p.mask.data) load_mask(p, head, first + i, k0, n, added);
            if (const C factor = advance(states[i], row, n, p.scale, p.mask.data ? added : nullptr); factor != 1)
              for (int64_t j = 0; j < out_width; ++j) sums[i * out_width + j] *= factor;
          }
          if (p.causal)  // its tile sums as many keys as the tile's last row sees
            for (int64_t j = padded(std::max<int64_t>(n, 0)); j < std::min(count, n + kRows); ++j) row[j] = 0;
        }
        multiply(rows, out_width, {scores, kKeys, 1}, {value.data + k0 * value.row, value.row}, sums, out_width, true,
                 C(1), [&](int64_t i, int64_t r) { return p.causal ? std::min(count, first + i + r - k0) : count; });
      }
      for (int64_t i = 0; i < rows; ++i) {
        const C sum = states[i].sum, factor = sum == 0 ? C(0) : C(1) / sum;  // who sees nobody gets zeros
        for (int64_t j = 0; j < out_width; ++j) sums[i * out_width + j] *= factor;
        C* kept = p.rows + (head * p.queries + first + i) * 2;
        kept[0] = sum == 0 ? kInfinity : states[i].top, kept[1] = factor;
      }
      store(p.output, head, first, rows, p.value_width, sums, out_width);
    }
  }

  // ---- backward

  // a b + c, rounded as in a tile's loop, which the compiler fuses where the machine can. In the loop below it would
  // not.
  static C fused(C a, C b, C c) {
#if defined(__FMA__)
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
  }
  // Summed in the order of the tiles: where one weight is 1, its product with the value and the row's are the same
  // bits, and the slope is 0.
  static void dots(const Problem& p, int64_t begin, int64_t end) {
    constexpr int64_t kTogether = 8;
    const int64_t width = p.value_width, size = kTogether * width;
    Parts parts = scratch(size, size);
    C *x = parts.take(size), *y = parts.take(size);
    for (int64_t head = begin; head < end; ++head)
      for (int64_t i = 0; i < p.queries; i += kTogether) {
        const int64_t rows = std::min(kTogether, p.queries - i);
        load(p.output, head, i, rows, width, x, width);
        load(p.grad, head, i, rows, width, y, width);
        C sums[kTogether] = {};
        for (int64_t j = 0; j < width; ++j)
#pragma GCC unroll 8
          for (int64_t r = 0; r < kTogether; ++r) sums[r] = fused(x[r * width + j], y[r * width + j], sums[r]);
        std::copy(sums, sums + rows, p.row_dots + head * p.queries + i);
      }
  }

  // What backward reads of a head of queries, or of a head of keys and values.
  struct Queries {
    Matrix query, grad;
  };
  struct Keys {
    Matrix key;
    C *key_panels, *value_panels;
  };
  struct Blocks {
    C *weights, *slopes, *added;
  };
  // The weights of a block and their slopes p (do v^T - dots).
  static void weigh(const Problem& p, int64_t head, int64_t first, int64_t rows, int64_t k0, int64_t count,
                    const Queries& q, const Keys& k, const Blocks& b) {
    const auto skip = [&](int64_t i, int64_t r, int64_t j) { return p.causal && first + i + r <= k0 + j; };
    if (multiplies_in_place(p))
      multiply_few(p, head / p.group, k0, rows, count, q.query.data + first * q.query.row, q.query.row,
                   b.weights);  // the bits of forward
    else
      multiply_panels(rows, count, p.width, {q.query.data + first * q.query.row, q.query.row, 1}, k.key_panels, k0,
                      b.weights, kKeys, skip);
    multiply_panels(rows, count, p.value_width, {q.grad.data + first * q.grad.row, q.grad.row, 1}, k.value_panels, k0,
                    b.slopes, kKeys, skip);
    for (int64_t i = 0; i < rows; ++i) {
      C *weight = b.weights + i * kKeys, *slope = b.slopes + i * kKeys;
      const int64_t n = std::max<int64_t>(0, p.causal ? std::min(count, first + i + 1 - k0) : count),
                    at_row = head * p.queries + first + i;
      const C level = p.rows[at_row * 2], factor = p.rows[at_row * 2 + 1], dot = p.row_dots[at_row];
      if (p.mask.data) load_mask(p, head, first + i, k0, n, b.added);
      int64_t j = 0;
      for (; j < n; j += kLanes) {
        Vector y =
            VectorFunctions<C>::exp(shifted(weight, p.mask.data ? b.added : nullptr, j, p.scale, level)) * factor;
        Vector z = y * (at(static_cast<const C*>(slope + j)) - dot);
        if (n - j < kLanes) {
          const auto inside = counting() < static_cast<C>(n - j);
          y = inside ? y : Vector{}, z = inside ? z : Vector{};
        }
        at(weight + j) = y;
        at(slope + j) = z;
      }
      for (; j < padded(count); ++j) weight[j] = slope[j] = 0;
    }
  }
  static void add_key_gradients(const Problem& p, int64_t first, int64_t rows, int64_t count, const Queries& q,
                                const Blocks& b, C* key_grad, int64_t key_row, C* value_grad, int64_t value_row) {
    const auto all = [&](int64_t, int64_t) { return rows; };
    multiply(count, padded(p.value_width), {b.weights, 1, kKeys}, {q.grad.data + first * q.grad.row, q.grad.row},
             value_grad, value_row, true, C(1), all);
    multiply(count, padded(p.width), {b.slopes, 1, kKeys}, {q.query.data + first * q.query.row, q.query.row}, key_grad,
             key_row, true, p.scale, all);
  }
  static void add_query_gradient(const Problem& p, int64_t first, int64_t rows, int64_t k0, int64_t count,
                                 const Keys& k, const Blocks& b, C* query_grad, int64_t row) {
    multiply(rows, padded(p.width), {b.slopes, kKeys, 1}, {k.key.data + k0 * k.key.row, k.key.row}, query_grad, row,
             true, p.scale,
             [&](int64_t i, int64_t r) { return p.causal ? std::min(count, first + i + r - k0) : count; });
  }

  // A gradient that is summed where it is returned, or in a buffer first.
  struct Sum {
    C* data;
    int64_t row;
  };
  static int64_t sum_size(const HeadRows& r, int64_t rows, int64_t n) { return copy_size(r, rows, n); }
  static Sum begin_sum(const HeadRows& r, int64_t head, int64_t first, int64_t rows, int64_t n, C* buffer) {
    const Sum s = lies_well(r, n) ? Sum{reinterpret_cast<C*>(r.at(head, first)), r.row} : Sum{buffer, padded(n)};
    for (int64_t i = 0; i < rows; ++i) std::fill(s.data + i * s.row, s.data + i * s.row + padded(n), C(0));
    return s;
  }
  static void end_sum(const HeadRows& r, int64_t head, int64_t first, int64_t rows, int64_t n, const Sum& s) {
    if (!lies_well(r, n)) store(r, head, first, rows, n, s.data, s.row);
  }

  // Memory for all that the backward functions read; it is filled again only when the head changes.
  struct Reader {
    const Problem& p;
    Parts parts;
    C *query_copy, *grad_copy, *key_copy, *value_copy;
    Keys keys{};
    Blocks blocks{};
    Queries queries{};
    int64_t last_head = -1, last_shared = -1;

    template <class... N>
    explicit Reader(const Problem& problem, N... more)
        : p(problem),
          parts(scratch(copy_size(p.query, p.queries, p.width), copy_size(p.grad, p.queries, p.value_width),
                        copy_size(p.key, p.keys, p.width), copy_size(p.value, p.keys, p.value_width),
                        panels_size(p.keys, p.width), panels_size(p.keys, p.value_width), kQueries * kKeys,
                        kQueries * kKeys, kKeys, more...)) {
      query_copy = parts.take(copy_size(p.query, p.queries, p.width)),
      grad_copy = parts.take(copy_size(p.grad, p.queries, p.value_width));
      key_copy = parts.take(copy_size(p.key, p.keys, p.width)),
      value_copy = parts.take(copy_size(p.value, p.keys, p.value_width));
      keys.key_panels = parts.take(panels_size(p.keys, p.width)),
      keys.value_panels = parts.take(panels_size(p.keys, p.value_width));
      blocks.weights = parts.take(kQueries * kKeys), blocks.slopes = parts.take(kQueries * kKeys),
      blocks.added = parts.take(kKeys);
    }
    void read(int64_t head) {
      if (head != last_head) {
        queries.query = matrix(p.query, head, 0, p.queries, p.width, query_copy);
        queries.grad = matrix(p.grad, head, 0, p.queries, p.value_width, grad_copy);
        last_head = head;
      }
      const int64_t shared = head / p.group;
      if (shared == last_shared) return;
      keys.key = matrix(p.key, shared, 0, p.keys, p.width, key_copy);
      pack_transposed(keys.key, p.keys, p.width, keys.key_panels);
      pack_transposed(matrix(p.value, shared, 0, p.keys, p.value_width, value_copy), p.keys, p.value_width,
                      keys.value_panels);
      last_shared = shared;
    }
  };
  // The first query that sees a key.
  static int64_t first_seeing(const Problem& p, int64_t key) { return p.causal ? key / kQueries * kQueries : 0; }

  static void backward(const Problem& p, int64_t begin, int64_t end) {
    const int64_t dq_size = sum_size(p.query_grad, p.queries, p.width), dk_size = sum_size(p.key_grad, p.keys, p.width),
                  dv_size = sum_size(p.value_grad, p.keys, p.value_width);
    Reader r(p, dq_size, dk_size, dv_size);
    C *dq_buffer = r.parts.take(dq_size), *dk_buffer = r.parts.take(dk_size), *dv_buffer = r.parts.take(dv_size);
    for (int64_t shared = begin; shared < end; ++shared) {
      const Sum dk = begin_sum(p.key_grad, shared, 0, p.keys, p.width, dk_buffer),
                dv = begin_sum(p.value_grad, shared, 0, p.keys, p.value_width, dv_buffer);
      for (int64_t head = shared * p.group; head < (shared + 1) * p.group; ++head) {
        r.read(head);
        const Sum dq = begin_sum(p.query_grad, head, 0, p.queries, p.width, dq_buffer);
        for (int64_t k0 = 0; k0 < p.keys; k0 += kKeys) {
          const int64_t count = std::min(kKeys, p.keys - k0);
          for (int64_t first = first_seeing(p, k0); first < p.queries; first += kQueries) {
            const int64_t rows = std::min(kQueries, p.queries - first);
            const int64_t some = p.causal ? std::min(count, first + rows - k0) : count;
            weigh(p, head, first, rows, k0, some, r.queries, r.keys, r.blocks);
            add_key_gradients(p, first, rows, some, r.queries, r.blocks, dk.data + k0 * dk.row, dk.row,
                              dv.data + k0 * dv.row, dv.row);
            add_query_gradient(p, first, rows, k0, some, r.keys, r.blocks, dq.data + first * dq.row, dq.row);
          }
        }
        end_sum(p.query_grad, head, 0, p.queries, p.width, dq);
      }
      end_sum(p.key_grad, shared, 0, p.keys, p.width, dk);
      end_sum(p.value_grad, shared, 0, p.keys, p.value_width, dv);
    }
  }
  static void backward_queries(const Problem& p, int64_t begin, int64_t end) {
    const int64_t size = sum_size(p.query_grad, kQueries, p.width), blocks = p.query_blocks();
    Reader r(p, size);
    C* buffer = r.parts.take(size);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t head = item / blocks, turn = item % blocks;
      const int64_t first = (turn % 2 ? blocks - 1 - turn / 2 : turn / 2) * kQueries,
                    rows = std::min(kQueries, p.queries - first);
      r.read(head);
      const Sum dq = begin_sum(p.query_grad, head, first, rows, p.width, buffer);
      const int64_t seen = p.causal ? std::min(p.keys, first + rows) : p.keys;
      for (int64_t k0 = 0; k0 < seen; k0 += kKeys) {
        const int64_t count = std::min(kKeys, seen - k0);
        weigh(p, head, first, rows, k0, count, r.queries, r.keys, r.blocks);
        add_query_gradient(p, first, rows, k0, count, r.keys, r.blocks, dq.data, dq.row);
      }
      end_sum(p.query_grad, head, first, rows, p.width, dq);
    }
  }
  static void backward_keys(const Problem& p, int64_t begin, int64_t end) {
    const int64_t dk_size = sum_size(p.key_grad, kKeys, p.width),
                  dv_size = sum_size(p.value_grad, kKeys, p.value_width), blocks = p.key_blocks();
    Reader r(p, dk_size, dv_size);
    C *dk_buffer = r.parts.take(dk_size), *dv_buffer = r.parts.take(dv_size);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t shared = item / blocks, turn = item % blocks;
      const int64_t k0 = (turn % 2 ? blocks - 1 - turn / 2 : turn / 2) * kKeys, count = std::min(kKeys, p.keys - k0);
      const Sum dk = begin_sum(p.key_grad, shared, k0, count, p.width, dk_buffer),
                dv = begin_sum(p.value_grad, shared, k0, count, p.value_width, dv_buffer);
      for (int64_t head = shared * p.group; head < (shared + 1) * p.group; ++head) {
        r.read(head);
        for (int64_t first = first_seeing(p, k0); first < p.queries; first += kQueries) {
          const int64_t rows = std::min(kQueries, p.queries - first);
          const int64_t some = p.causal ? std::min(count, first + rows - k0) : count;
          weigh(p, head, first, rows, k0, some, r.queries, r.keys, r.blocks);
          add_key_gradients(p, first, rows, some, r.queries, r.blocks, dk.data, dk.row, dv.data, dv.row);
        }
      }
      end_sum(p.key_grad, shared, k0, count, p.width, dk);
      end_sum(p.value_grad, shared, k0, count, p.value_width, dv);
    }
  }

  static AttentionKernels<C> kernels() { return {forward, dots, backward, backward_queries, backward_keys}; }
};

}  // namespace
}  // namespace cresset
