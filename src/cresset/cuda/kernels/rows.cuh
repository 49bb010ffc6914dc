// Rows that are kept in registers: THREADS threads have a row, each of them PER vectors of VECTOR elements. A block has
// several rows when they are short. What the threads of a row make together is there for all of them.
//
// -D options: THREADS (a power of two), VECTOR, PER. A long row is walked more than once instead: RowWalk.
#pragma once
#include "block.cuh"

constexpr int kRowBlock = THREADS < 128 ? 128 : THREADS;
constexpr int kRowWarps = THREADS < 32 ? 1 : THREADS / 32;
constexpr int kRowLanes = THREADS < 32 ? THREADS : 32;

CRESSET_INLINE int64_t row_of_thread() {
  return static_cast<int64_t>(blockIdx.x) * (kRowBlock / THREADS) + threadIdx.x / THREADS;
}
CRESSET_INLINE int place_in_row() { return static_cast<int>(threadIdx.x) % THREADS; }

// Gives each thread the value of warp number (lane modulo the warps of a row). SLOT differs for each use in a kernel,
// so that none has to wait until memory is free again.
template <int SLOT, class A>
CRESSET_INLINE A exchange_warps(const A& a) {
  __shared__ __align__(16) char bytes[32 * sizeof(A)];
  auto* parts = reinterpret_cast<A*>(bytes);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0) parts[warp] = a;
  __syncthreads();
  return parts[warp / kRowWarps * kRowWarps + lane % kRowWarps];
}
template <int SLOT, class C>
CRESSET_INLINE C sum_of_row(C x) {
  x = sum_lanes<kRowLanes>(x);
  if constexpr (kRowWarps > 1) x = sum_lanes<kRowWarps>(exchange_warps<SLOT>(x));
  return x;
}
template <class C>
struct Pair {
  C first, second;
};
template <int SLOT, class C>
CRESSET_INLINE Pair<C> sums_of_row(C x, C y) {
  Pair<C> pair{sum_lanes<kRowLanes>(x), sum_lanes<kRowLanes>(y)};
  if constexpr (kRowWarps > 1) {
    pair = exchange_warps<SLOT>(pair);
    pair = {sum_lanes<kRowWarps>(pair.first), sum_lanes<kRowWarps>(pair.second)};
  }
  return pair;
}

// The places of a long row that a thread visits: vectors where `a` and `b` (and `c`) are aligned alike, single elements
// before and after them, or everywhere.
struct RowWalk {
  int64_t head, vectors, n;
  template <class A, class B>
  CRESSET_INLINE RowWalk(const A* a, const B* b, int64_t n) : n(n) {
    constexpr uint64_t kA = sizeof(A) * VECTOR, kB = sizeof(B) * VECTOR;
    const auto at = reinterpret_cast<uint64_t>(a);
    head = static_cast<int64_t>((kA - at % kA) % kA / sizeof(A));
    if (head > n) head = n;
    const bool alike = reinterpret_cast<uint64_t>(b + head) % kB == 0 && reinterpret_cast<uint64_t>(a + head) % kA == 0;
    vectors = alike ? (n - head) / VECTOR : 0;
    if (!alike) head = 0;
  }
  // use(first place, load(first place)) for vectors, of which several are loaded before the first is used, and
  // element(place).
  template <class L, class U, class E>
  CRESSET_INLINE void visit(L&& load, U&& use, E&& element) const {
    constexpr int kAtOnce = 4;
    const int place = place_in_row();
    int64_t v = place;
#pragma unroll 1
    for (; v + (kAtOnce - 1) * THREADS < vectors; v += kAtOnce * THREADS) {
      decltype(load(0)) loaded[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) loaded[u] = load(head + (v + u * THREADS) * VECTOR);
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) use(head + (v + u * THREADS) * VECTOR, loaded[u]);
    }
#pragma unroll 1
    for (; v < vectors; v += THREADS) use(head + v * VECTOR, load(head + v * VECTOR));
    const int64_t between = vectors * VECTOR;  // one loop for what is before the vectors and behind them
#pragma unroll 1
    for (int64_t i = place; i < n - between; i += THREADS) element(i < head ? i : i + between);
  }
};

// Vectors of two rows at the same place.
template <class A, class B>
struct TwoVectors {
  Vector<A, VECTOR> first;
  Vector<B, VECTOR> second;
};
template <class A, class B>
CRESSET_INLINE TwoVectors<A, B> load_two(const A* a, const B* b) {
  return {load_vector<VECTOR>(a), load_vector<VECTOR>(b)};
}
