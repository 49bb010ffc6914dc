// Folds: how a reduction runs over a tensor of any strides, with results that do not depend on the number of threads.
//
// The elements behind one result are cut into chunks whose size depends on the shape only. A chunk becomes one
// accumulator, and the accumulators of a result are merged in a fixed tree. A Fold says what a chunk becomes: `rows`
// folds contiguous runs, `columns` folds rows of a matrix into each other. The template make_fold() makes one from a
// struct with a few short inline functions.
#pragma once
#include <cstring>

#include "base/instruction_set.h"
#include "tensor/tensor.h"

namespace cresset {

#define CRESSET_INLINE_MEMBER [[gnu::always_inline]] inline
// Before a vectorized loop: what is left behind its last vector stays a loop, which is a third less code. Loops over
// all lanes of a run are written out, since their sums are registers then.
#define CRESSET_ROLLED _Pragma("GCC unroll 1")

struct Fold {
  Dtype element;     // what the kernels read: other dtypes are converted block by block
  Dtype results[2];  // what finish writes: converted likewise
  int accumulator;   // bytes of one accumulator
  bool ordered;      // accumulators hold positions, so elements must come in index order
  const void* self;  // the struct with the functions
  // accs[r] = fold of the n elements at x + r * step
  void (*rows)(const void* self, const void* x, int64_t count, int64_t step, int64_t n, int64_t first, void* accs);
  // accs[c] = fold of the elements x[c + r * step] for all rows r
  void (*columns)(const void* self, const void* x, int64_t step, int64_t rows, int64_t columns, int64_t first,
                  void* accs);
  // into[k] = into[k] followed by from[k]
  void (*merge)(void* into, const void* from, int64_t count);
  // The results of `count` accumulators, each made of n elements.
  void (*finish)(const void* self, const void* accs, int64_t count, int64_t n, char* const* out);
};

inline constexpr int64_t kFoldChunk = 4096;         // elements of a run in one accumulator
inline constexpr int64_t kFoldRows = 256;           // rows of a matrix in one accumulator
inline constexpr int64_t kFoldColumns = 1024;       // columns folded side by side
inline constexpr int64_t kFoldLanes = 64;           // running values of one run
inline constexpr int64_t kLargestAccumulator = 32;  // bytes

// Folds the dimensions of `input` whose bit is set in `reduced`. The outs are contiguous, without those dimensions or
// with size 1 there.
void run_fold(const Tensor& input, uint64_t reduced, const Fold& fold, std::span<const Tensor> outs);

// The same of an input that is still to be computed (dispatch/late.h): elements are folded as they are made. False:
// that cannot be, and nothing was done.
bool run_fold_late(const Tensor& input, uint64_t reduced, const Fold& fold, std::span<const Tensor> outs);

// ---- chunks by lanes
//
// A lane operation has a Value, identity(), map(element) and combine(a, b). The loops below are plain: the compiler
// vectorizes them. One whose map is long code says so with `heavy`, and gets fewer copies of it.

template <class Op>
concept Heavy = requires { Op::heavy; };

// One with another rule for nan has `ordered`, a combine that is right without nan and much shorter: it is tried first.
template <class Op>
concept MindsNan =
    std::is_floating_point_v<typename Op::Value> && requires(typename Op::Value v) { Op::ordered(v, v); };

// Returns whether there was no nan, and so acc is right.
template <class Op, class T>
CRESSET_INLINE bool fold_ordered_columns(const Op& op, const T* x, int64_t step, int64_t rows, int64_t columns,
                                         T* __restrict acc) {
  using Flag = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  alignas(64) Flag unordered[kFoldColumns];
  CRESSET_ROLLED
  for (int64_t c = 0; c < columns; ++c) acc[c] = op.identity(), unordered[c] = 0;
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T* __restrict a = x + r * step;
    const T* __restrict b = a + step;
    const T* __restrict d = b + step;
    const T* __restrict e = d + step;
    CRESSET_ROLLED
    for (int64_t c = 0; c < columns; ++c) {
      acc[c] = op.ordered(acc[c], op.ordered(op.ordered(a[c], b[c]), op.ordered(d[c], e[c])));
      unordered[c] |= Flag(__builtin_isunordered(a[c], b[c])) | Flag(__builtin_isunordered(d[c], e[c]));
    }
  }
  for (; r < rows; ++r) {
    const T* __restrict a = x + r * step;
    CRESSET_ROLLED
    for (int64_t c = 0; c < columns; ++c)
      acc[c] = op.ordered(acc[c], a[c]), unordered[c] |= Flag(__builtin_isunordered(a[c], a[c]));
  }
  Flag any = 0;
  CRESSET_ROLLED
  for (int64_t c = 0; c < columns; ++c) any |= unordered[c];
  return any == 0;
}

// The same of a run: rows of kFoldLanes elements, and the rest, into as many lanes. One row after the other, which
// takes half the time of four at once where they come from memory; and a nan is asked for in pairs, which leaves the
// lanes in registers.
template <class Op, class T>
CRESSET_INLINE bool fold_ordered_lanes(const Op& op, const T* x, int64_t n, T* __restrict lanes) {
  using Flag = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  constexpr int64_t half = kFoldLanes / 2;
  alignas(64) Flag unordered[half];
  for (int64_t c = 0; c < kFoldLanes; ++c) lanes[c] = op.identity();
  for (int64_t c = 0; c < half; ++c) unordered[c] = 0;
  const T* __restrict a = x;
  for (; a + kFoldLanes <= x + n; a += kFoldLanes) {
    for (int64_t c = 0; c < kFoldLanes; ++c) lanes[c] = op.ordered(lanes[c], a[c]);
    for (int64_t c = 0; c < half; ++c) unordered[c] |= Flag(__builtin_isunordered(a[c], a[c + half]));
  }
  Flag any = 0;
  for (int64_t c = 0; c < half; ++c) any |= unordered[c];
  CRESSET_ROLLED
  for (int64_t c = 0; a + c < x + n; ++c) {
    lanes[c] = op.ordered(lanes[c], a[c]);
    any |= Flag(__builtin_isunordered(a[c], a[c]));
  }
  return any == 0;
}

// acc[c] = acc[c] followed by x[c], for an operation whose map is long code: one copy of it, for whole vectors.
template <class Op, class T>
CRESSET_INLINE void fold_heavy(const Op& op, const T* x, int64_t n, typename Op::Value* __restrict acc) {
  constexpr int64_t kBlock = 16;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = n - i < kBlock ? n - i : kBlock;
    alignas(64) T padded[kBlock];
    alignas(64) typename Op::Value values[kBlock];
    const T* from = x + i;
    if (count < kBlock) {
      CRESSET_ROLLED
      for (int64_t c = 0; c < kBlock; ++c) padded[c] = from[c < count ? c : 0];
      from = padded;
    }
    for (int64_t c = 0; c < kBlock; ++c) values[c] = op.map(from[c]);
    CRESSET_ROLLED
    for (int64_t c = 0; c < count; ++c) acc[i + c] = op.combine(acc[i + c], values[c]);
  }
}

template <class Op, class T>
CRESSET_INLINE void fold_columns(const Op& op, const T* x, int64_t step, int64_t rows, int64_t columns,
                                 typename Op::Value* __restrict acc) {
  if constexpr (MindsNan<Op>)
    if (fold_ordered_columns(op, x, step, rows, columns, acc)) return;
  CRESSET_ROLLED
  for (int64_t c = 0; c < columns; ++c) acc[c] = op.identity();
  if constexpr (Heavy<Op>) {
    for (int64_t r = 0; r < rows; ++r) fold_heavy(op, x + r * step, columns, acc);
    return;
  }
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T* __restrict a = x + r * step;
    const T* __restrict b = a + step;
    const T* __restrict d = b + step;
    const T* __restrict e = d + step;
    CRESSET_ROLLED
    for (int64_t c = 0; c < columns; ++c)
      acc[c] = op.combine(acc[c],
                          op.combine(op.combine(op.map(a[c]), op.map(b[c])), op.combine(op.map(d[c]), op.map(e[c]))));
  }
  for (; r < rows; ++r) {
    const T* __restrict a = x + r * step;
    CRESSET_ROLLED
    for (int64_t c = 0; c < columns; ++c) acc[c] = op.combine(acc[c], op.map(a[c]));
  }
}

#define CRESSET_TERM __attribute__((always_inline))
template <class Value, class Put>
CRESSET_INLINE Value fold_halves(Value* lanes, const Put& put) {
  for (int64_t c = 0; c < 32; ++c) lanes[c] = put(lanes[c], lanes[c + 32]);
  for (int64_t c = 0; c < 16; ++c) lanes[c] = put(lanes[c], lanes[c + 16]);
  for (int64_t c = 0; c < 8; ++c) lanes[c] = put(lanes[c], lanes[c + 8]);
  for (int64_t c = 0; c < 4; ++c) lanes[c] = put(lanes[c], lanes[c + 4]);
  return put(put(lanes[0], lanes[2]), put(lanes[1], lanes[3]));
}

// A run is folded as a matrix with kFoldLanes columns, then the lanes by halves.
template <class Op, class T>
CRESSET_INLINE typename Op::Value fold_run(const Op& op, const T* x, int64_t n) {
  using Value = typename Op::Value;
  if (!Heavy<Op> && n < 16) {
    Value acc = op.identity();
    for (int64_t i = 0; i < n; ++i) acc = op.combine(acc, op.map(x[i]));
    return acc;
  }
  alignas(64) Value lanes[kFoldLanes];
  const int64_t rows = n / kFoldLanes;
  if constexpr (MindsNan<Op>)
    if (fold_ordered_lanes(op, x, n, lanes))
      return fold_halves(lanes, [&](Value a, Value b) CRESSET_TERM { return op.ordered(a, b); });
  if constexpr (Heavy<Op>) {
    for (int64_t c = 0; c < kFoldLanes; ++c) lanes[c] = op.identity();
    for (int64_t i = 0; i < n; i += kFoldLanes) fold_heavy(op, x + i, n - i < kFoldLanes ? n - i : kFoldLanes, lanes);
  } else if constexpr (MindsNan<Op>) {
    fold_columns(op, x, kFoldLanes, rows, kFoldLanes, lanes);
  } else {
    // Element after element: reading four rows at once takes a third longer where they come from memory. The first row
    // is not added to lanes in memory: these would be cleared by an instruction that takes a tenth of a chunk's time.
    if (rows == 0)
      for (int64_t c = 0; c < kFoldLanes; ++c) lanes[c] = op.identity();
    else
      for (int64_t c = 0; c < kFoldLanes; ++c) lanes[c] = op.combine(op.identity(), op.map(x[c]));
    for (int64_t r = 1; r < rows; ++r)
      for (int64_t c = 0; c < kFoldLanes; ++c) lanes[c] = op.combine(lanes[c], op.map(x[r * kFoldLanes + c]));
  }
  const T* rest = x + rows * kFoldLanes;
  const int64_t tail = Heavy<Op> ? 0 : n - rows * kFoldLanes;
  CRESSET_ROLLED
  for (int64_t c = 0; c < tail; ++c) lanes[c] = op.combine(lanes[c], op.map(rest[c]));
  return fold_halves(lanes, [&](Value a, Value b) CRESSET_TERM { return op.combine(a, b); });
}

// The sum of term(i) for i below n, by lanes; long sums are put together in double. The term is a lambda marked
// CRESSET_TERM.
template <class T, class Term>
CRESSET_INLINE double sum_of_terms(int64_t n, const Term& term) {
  double total = 0;
  int64_t i = 0;
  if (n >= 16) {
    alignas(64) T lanes[kFoldLanes];
    while (i < n) {
      const int64_t end = n - i < kFoldChunk ? n : i + kFoldChunk;
      for (int64_t c = 0; c < kFoldLanes; ++c) lanes[c] = 0;
      for (; i + kFoldLanes <= end; i += kFoldLanes) {
#pragma GCC ivdep
        for (int64_t c = 0; c < kFoldLanes; ++c) lanes[c] += term(i + c);
      }
#pragma GCC ivdep
      CRESSET_ROLLED
      for (int64_t c = 0; i + c < end; ++c) lanes[c] += term(i + c);
      i = end;
      for (int64_t c = 0; c < 32; ++c) lanes[c] += lanes[c + 32];
      for (int64_t c = 0; c < 16; ++c) lanes[c] += lanes[c + 16];
      for (int64_t c = 0; c < 8; ++c) lanes[c] += lanes[c + 8];
      total += static_cast<double>((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
               static_cast<double>((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    }
    return total;
  }
  for (; i < n; ++i) total += static_cast<double>(term(i));
  return total;
}

// ---- a Fold from a struct
//
// The struct K of a kernel has: Element, Accumulator; ordered; run(x, n, first) -> Accumulator;
// columns(x, step, rows, columns, first, accs); merge(into, from).
// The struct F of a fold is derived from its Kernel and has: Result (and Result2 if there is a second); finish(acc, n,
// Result*[, Result2*]).

template <class F>
concept HasSecondResult = requires { typename F::Result2; };

template <class K>
struct RowsLoop {
  template <class Fma>
  CRESSET_INLINE void run(const K* kernel, const typename K::Element* x, int64_t count, int64_t step, int64_t n,
                          int64_t first, typename K::Accumulator* accs) {
    for (int64_t r = 0; r < count; ++r) accs[r] = kernel->run(x + r * step, n, first);
  }
};
template <class K>
struct ColumnsLoop {
  template <class Fma>
  CRESSET_INLINE void run(const K* kernel, const typename K::Element* x, int64_t step, int64_t rows, int64_t columns,
                          int64_t first, typename K::Accumulator* accs) {
    kernel->columns(x, step, rows, columns, first, accs);
  }
};

template <class F>
Fold make_fold(const F& f) {
  using K = typename F::Kernel;
  using Element = typename K::Element;
  using Accumulator = typename K::Accumulator;
  static_assert(sizeof(Accumulator) <= kLargestAccumulator);
  Fold fold{};
  fold.element = dtype_of<Element>;
  fold.results[0] = dtype_of<typename F::Result>;
  if constexpr (HasSecondResult<F>) fold.results[1] = dtype_of<typename F::Result2>;
  fold.accumulator = sizeof(Accumulator);
  fold.ordered = K::ordered;
  fold.self = static_cast<const K*>(&f);
  fold.rows = [](const void* self, const void* x, int64_t count, int64_t step, int64_t n, int64_t first, void* accs) {
    const auto run = [&](auto runs) {
      runs(static_cast<const K*>(self), static_cast<const Element*>(x), count, step, n, first,
           static_cast<Accumulator*>(accs));
    };
    // Only the widest level has products and extremes of integers of 64 bits.
    if constexpr (std::is_same_v<Element, int64_t>)
      run([](auto... args) { run_vectorized<RowsLoop<K>>(args...); });
    else
      run([](auto... args) { run_vectorized_256<RowsLoop<K>>(args...); });
  };
  fold.columns = [](const void* self, const void* x, int64_t step, int64_t rows, int64_t columns, int64_t first,
                    void* accs) {
    run_vectorized_256<ColumnsLoop<K>>(static_cast<const K*>(self), static_cast<const Element*>(x), step, rows, columns,
                                       first, static_cast<Accumulator*>(accs));
  };
  fold.merge = [](void* into, const void* from, int64_t count) {
    auto* a = static_cast<Accumulator*>(into);
    const auto* b = static_cast<const Accumulator*>(from);
    for (int64_t i = 0; i < count; ++i) K::merge(a[i], b[i]);
  };
  fold.finish = [](const void* self, const void* accs, int64_t count, int64_t n, char* const* out) {
    const auto* f = static_cast<const F*>(static_cast<const K*>(self));
    const auto* a = static_cast<const Accumulator*>(accs);
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (HasSecondResult<F>)
        f->finish(a[i], n, reinterpret_cast<typename F::Result*>(out[0]) + i,
                  reinterpret_cast<typename F::Result2*>(out[1]) + i);
      else
        f->finish(a[i], n, reinterpret_cast<typename F::Result*>(out[0]) + i);
    }
  };
  return fold;
}

// The kernel whose chunks are folded by one lane operation; A is what they are merged in.
template <class Op, class E, class A>
struct LaneKernel {
  using Kernel = LaneKernel;
  using Element = E;
  using Accumulator = A;
  static constexpr bool ordered = false;
  Op op;

  CRESSET_INLINE_MEMBER A run(const E* x, int64_t n, int64_t) const { return static_cast<A>(fold_run(op, x, n)); }
  CRESSET_INLINE_MEMBER void columns(const E* x, int64_t step, int64_t rows, int64_t count, int64_t, A* accs) const {
    if constexpr (std::is_same_v<A, typename Op::Value>) {
      fold_columns(op, x, step, rows, count, accs);
    } else {
      alignas(64) typename Op::Value values[kFoldColumns];
      fold_columns(op, x, step, rows, count, values);
      for (int64_t c = 0; c < count; ++c) accs[c] = static_cast<A>(values[c]);
    }
  }
  static void merge(A& into, const A& from) { into = Op::template merge<A>(into, from); }
};

}  // namespace cresset
