// Linear algebra of matrices that fit into shared memory: a block has one of them, or some columns of right-hand sides.
// Matrices lie column after column. In shared memory a column is followed by a gap of one element where its length is
// even, so that rows lie in different banks, too.
//
// SOLVE, FACTOR, FORM, LEAST: which kernel is wanted. T: the dtype. ROWS: with SOLVE and LEAST, so many rows a lane.
#pragma once
#include "block.cuh"

using Real = part<T>;
using WideReal = wide<Real>;

extern __shared__ __align__(16) char shared_bytes[];

template <class V>
__device__ __forceinline__ V conjugate(V v) {
  if constexpr (is_complex<V>)
    return V(v.re, -v.im);
  else
    return v;
}
template <class V>
__device__ __forceinline__ part<V> real_of(V v) {
  if constexpr (is_complex<V>)
    return v.re;
  else
    return v;
}
template <class V>
__device__ __forceinline__ part<V> imaginary_of(V v) {
  if constexpr (is_complex<V>)
    return v.im;
  else
    return part<V>(0);
}
__device__ __forceinline__ int32_t pitch_of(int32_t rows) { return rows | 1; }

#if defined(SOLVE) || defined(LEAST)
__device__ __forceinline__ T from_lane(const T& a, int lane) {
  using Parts = ShuffleWords<sizeof(T) / 4>;
  Parts parts = __builtin_bit_cast(Parts, a);
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i)
    parts.words[i] = __shfl_sync(kWholeWarp, parts.words[i], lane);
  return __builtin_bit_cast(T, parts);
}

// A triangle as it is used: the element at (i, j) is that of the matrix at i * down + j * right.
struct Triangle {
  const T* elements;
  int32_t down, right;
  bool unit, conjugated;
  __device__ __forceinline__ T at(int32_t i, int32_t j) const {
    const T v = elements[i * down + j * right];
    return conjugated ? conjugate(v) : v;
  }
};
// An equation of a warp, whose lanes have the rows `lane`, `lane` + 32, ... of the right-hand side: row after row, what
// is found is taken from all rows that are left.
template <bool UPPER>
__device__ __forceinline__ void solve(const Triangle& a, T (&x)[ROWS], int32_t n) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int step = 0; step < ROWS; ++step) {
    const int k = UPPER ? ROWS - 1 - step : step;
#pragma unroll 1
    for (int l = 0; l < 32; ++l) {
      const int owner = UPPER ? 31 - l : l, i = k * 32 + owner;
      if (i >= n) continue;
      T found = from_lane(x[k], owner);
      if (!a.unit) found = found / a.at(i, i);
      if (lane == owner) x[k] = found;
#pragma unroll
      for (int r = UPPER ? 0 : k; r <= (UPPER ? k : ROWS - 1); ++r) {
        const int row = r * 32 + lane;
        if (row < n && (UPPER ? row < i : row > i)) x[r] = x[r] - a.at(row, i) * found;
      }
    }
  }
}
#endif

#ifdef SOLVE
constexpr int kWarps = 4;
// One triangle after the other; `kinds` has eight bits for each: 1 there is one, 2 upper as it is used, 4 with ones on
// its diagonal, 8 transposed, 16 conjugated. Rows are exchanged first, or with 1 << 16 last, where there are pivots,
// which count from 1; bad ones exchange nothing.
extern "C" __global__ void __launch_bounds__(32 * kWarps)
    solve_small(const T* a, T* b, const int32_t* pivots, int32_t n, int32_t columns, int32_t block_columns,
                int32_t column_blocks, int32_t kinds) {
  after_earlier_work();
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int32_t matrix = static_cast<int32_t>(blockIdx.x) / column_blocks,
                first = (static_cast<int32_t>(blockIdx.x) % column_blocks) * block_columns,
                last = first + block_columns < columns ? first + block_columns : columns;
  const int32_t pitch = pitch_of(n);
  T* const elements = reinterpret_cast<T*>(shared_bytes);
  int32_t *const order = reinterpret_cast<int32_t*>(elements + pitch * n), *const others = order + n;
  a += static_cast<int64_t>(matrix) * n * n;
  b += static_cast<int64_t>(matrix) * n * columns;
  for (int32_t j = warp; j < n; j += kWarps)
    for (int32_t i = lane; i < n; i += 32) elements[j * pitch + i] = a[j * n + i];
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < n; i += 32 * kWarps) {
    order[i] = i;
    if (pivots) others[i] = pivots[static_cast<int64_t>(matrix) * n + i] - 1;
  }
  __syncthreads();
  if (pivots) {
    if (threadIdx.x == 0)
      for (int32_t i = 0; i < n; ++i) {
        const int32_t other = others[i];
        if (other < 0 || other >= n || other == i) continue;
        const int32_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
      }
    __syncthreads();
  }
  const bool exchanges_last = (kinds >> 16 & 1) != 0;
  for (int32_t column = first + warp; column < last; column += kWarps) {
    T* const right = b + column * n;
    T x[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const int32_t row = r * 32 + lane;
      x[r] = row < n ? right[exchanges_last ? row : order[row]] : T(0);
    }
    __syncwarp();
#pragma unroll 1
    for (int32_t rest = kinds & 0xffff; rest; rest >>= 8) {
      const bool transposed = (rest & 8) != 0;
      const Triangle t{elements, transposed ? pitch : 1, transposed ? 1 : pitch, (rest & 4) != 0, (rest & 16) != 0};
      if (rest & 2)
        solve<true>(t, x, n);
      else
        solve<false>(t, x, n);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const int32_t row = r * 32 + lane;
      if (row < n) right[exchanges_last ? order[row] : row] = x[r];
    }
  }
}
#endif

#if defined(FACTOR) || defined(LEAST)
// A reflector I - tau v vᴴ, with v = (1, scale * what is below), that makes a column (beta, 0, ...).
struct Reflector {
  T tau, scale;
  Real beta;
};
// By a warp, from the element `at` of a column on.
__device__ __forceinline__ Reflector reflector_of(const T* column, int32_t at, int32_t rows) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const T alpha = column[at];
  // The sum of squares, of numbers times `by`.
  const auto sum_below = [&](WideReal by) {
    WideReal sum = 0;
    for (int32_t i = at + 1 + lane; i < rows; i += 32) {
      const WideReal re = static_cast<WideReal>(real_of(column[i])) * by,
                     im = static_cast<WideReal>(imaginary_of(column[i])) * by;
      sum = sum + (re * re + im * im);
    }
    return sum_lanes<32>(sum);
  };
  const auto square_of_alpha = [&](WideReal by) {
    const WideReal re = static_cast<WideReal>(real_of(alpha)) * by,
                   im = static_cast<WideReal>(imaginary_of(alpha)) * by;
    return re * re + im * im;
  };
  WideReal by = 1, below = sum_below(by), all = below + square_of_alpha(by);
  if constexpr (is_same<Real, double>) {  // squares of floats neither overflow nor vanish in double
    if (all > 1e290 || all < 1e-270) {
      by = all > 1e290 ? 1e-160 : 1e160;
      below = sum_below(by), all = below + square_of_alpha(by);
    }
  }
  if (below == WideReal(0) && imaginary_of(alpha) == Real(0)) return {T(0), T(0), real_of(alpha)};
  const Real norm = static_cast<Real>(::sqrt(all) / by), beta = real_of(alpha) >= Real(0) ? -norm : norm;
  return {(T(beta) - alpha) / T(beta), T(1) / (alpha - T(beta)), beta};
}

// The first `reflectors` columns of a matrix in shared memory become R and, below the diagonal, the reflectors, which
// all columns behind go through. A warp has each column whose number is its own among the warps.
__device__ __forceinline__ void factor(T* elements, int32_t rows, int32_t columns, int32_t reflectors, T* tau) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32),
            warps = static_cast<int>(blockDim.x / 32);
  const int32_t pitch = pitch_of(rows);
  for (int32_t j = 0; j < reflectors; ++j) {
    T* const v = elements + j * pitch;
    const Reflector h = reflector_of(v, j, rows);
    const T adjoint = conjugate(h.tau);
    for (int32_t c = warp; c < columns; c += warps) {
      if (c <= j) continue;
      T* const column = elements + c * pitch;
      T dot = lane == 0 ? column[j] : T(0);
      for (int32_t i = j + 1 + lane; i < rows; i += 32) dot = dot + conjugate(v[i] * h.scale) * column[i];
      dot = sum_lanes<32>(dot) * adjoint;
      if (lane == 0) column[j] = column[j] - dot;
      for (int32_t i = j + 1 + lane; i < rows; i += 32) column[i] = column[i] - v[i] * h.scale * dot;
    }
    __syncthreads();
    if (j % warps != warp) continue;
    for (int32_t i = j + 1 + lane; i < rows; i += 32) v[i] = v[i] * h.scale;
    if (lane == 0) {
      v[j] = T(h.beta);
      if (tau) tau[j] = h.tau;
    }
  }
  __syncthreads();
}
#endif

__device__ __forceinline__ void bring(T* elements, const T* from, int32_t rows, int32_t columns) {
  const int32_t pitch = pitch_of(rows), warps = static_cast<int32_t>(blockDim.x / 32);
  for (int32_t c = static_cast<int32_t>(threadIdx.x / 32); c < columns; c += warps)
    for (int32_t i = static_cast<int32_t>(threadIdx.x % 32); i < rows; i += 32)
      elements[c * pitch + i] = from[c * rows + i];
}
__device__ __forceinline__ void take_back(T* to, const T* elements, int32_t rows, int32_t columns) {
  const int32_t pitch = pitch_of(rows), warps = static_cast<int32_t>(blockDim.x / 32);
  for (int32_t c = static_cast<int32_t>(threadIdx.x / 32); c < columns; c += warps)
    for (int32_t i = static_cast<int32_t>(threadIdx.x % 32); i < rows; i += 32)
      to[c * rows + i] = elements[c * pitch + i];
}

#ifdef FACTOR
// A becomes R and the reflectors, as LAPACK's geqrf has them.
extern "C" __global__ void __launch_bounds__(512) factor_small(T* a, T* tau, int32_t rows, int32_t columns) {
  after_earlier_work();
  T* const elements = reinterpret_cast<T*>(shared_bytes);
  const int32_t reflectors = rows < columns ? rows : columns;
  a += static_cast<int64_t>(blockIdx.x) * rows * columns;
  bring(elements, a, rows, columns);
  __syncthreads();
  factor(elements, rows, columns, reflectors, tau + static_cast<int64_t>(blockIdx.x) * reflectors);
  take_back(a, elements, rows, columns);
}
#endif

#ifdef FORM
// The first columns of Q, of which `reflectors` are given as LAPACK's orgqr takes them: the reflectors are applied to
// the identity, the last one first. A column belongs to a warp as above.
extern "C" __global__ void __launch_bounds__(512)
    form_small(T* q, const T* tau, int32_t rows, int32_t columns, int32_t reflectors) {
  after_earlier_work();
  T* const elements = reinterpret_cast<T*>(shared_bytes);
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32),
            warps = static_cast<int>(blockDim.x / 32);
  const int32_t pitch = pitch_of(rows);
  q += static_cast<int64_t>(blockIdx.x) * rows * columns;
  tau += static_cast<int64_t>(blockIdx.x) * reflectors;
  bring(elements, q, rows, reflectors);
  for (int32_t c = reflectors + warp; c < columns; c += warps)
    for (int32_t i = lane; i < rows; i += 32) elements[c * pitch + i] = i == c ? T(1) : T(0);
  __syncthreads();
  for (int32_t j = reflectors - 1; j >= 0; --j) {
    T* const v = elements + j * pitch;
    const T factor = tau[j];
    for (int32_t c = warp; c < columns; c += warps) {
      if (c <= j) continue;
      T* const column = elements + c * pitch;
      T dot = lane == 0 ? column[j] : T(0);
      for (int32_t i = j + 1 + lane; i < rows; i += 32) dot = dot + conjugate(v[i]) * column[i];
      dot = sum_lanes<32>(dot) * factor;
      if (lane == 0) column[j] = column[j] - dot;
      for (int32_t i = j + 1 + lane; i < rows; i += 32) column[i] = column[i] - v[i] * dot;
    }
    __syncthreads();
    if (j % warps == warp) {
      for (int32_t i = lane; i < rows; i += 32) v[i] = i < j ? T(0) : i == j ? T(1) - factor : -(factor * v[i]);
      __syncwarp();
    }
  }
  __syncthreads();
  take_back(q, elements, rows, columns);
}
#endif

#ifdef LEAST
// The X that makes |A X - B| least, for A that is not wide: A and B go through A's reflectors together, then R X is
// what the first rows of B have become. X stands where B did. info: the first zero of R's diagonal, from 1, or 0.
extern "C" __global__ void __launch_bounds__(512)
    least_squares_small(const T* a, T* b, int32_t* info, int32_t rows, int32_t columns, int32_t right_columns) {
  after_earlier_work();
  T* const elements = reinterpret_cast<T*>(shared_bytes);
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32),
            warps = static_cast<int>(blockDim.x / 32);
  const int32_t pitch = pitch_of(rows);
  T* const right = elements + columns * pitch;
  b += static_cast<int64_t>(blockIdx.x) * rows * right_columns;
  bring(elements, a + static_cast<int64_t>(blockIdx.x) * rows * columns, rows, columns);
  bring(right, b, rows, right_columns);
  __syncthreads();
  T* const no_tau = nullptr;
  factor(elements, rows, columns + right_columns, columns, no_tau);
  if (warp == 0) {
    int32_t zero = columns;
    for (int32_t i = lane; i < columns; i += 32)
      if (elements[i * pitch + i] == T(0) && i < zero) zero = i;
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) {
      const int32_t other = shuffle_xor(zero, mask);
      zero = other < zero ? other : zero;
    }
    if (lane == 0) info[blockIdx.x] = zero < columns ? zero + 1 : 0;
  }
  const Triangle r{elements, 1, pitch, false, false};
  for (int32_t c = warp; c < right_columns; c += warps) {
    T x[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; ++k) x[k] = k * 32 + lane < columns ? right[c * pitch + k * 32 + lane] : T(0);
    solve<true>(r, x, columns);
#pragma unroll
    for (int k = 0; k < ROWS; ++k)
      if (k * 32 + lane < columns) right[c * pitch + k * 32 + lane] = x[k];
  }
  __syncthreads();
  take_back(b, right, rows, right_columns);
}
#endif
