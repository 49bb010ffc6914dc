// Distances of all rows of one matrix to all rows of another, and their gradient: what cdist is made of where the
// Euclidean distance does not come from a product. Differences are not kept: only the points and the distances are.
#include <cmath>

#include "base/exponentials.h"
#include "base/instruction_set.h"
#include "base/parallel.h"
#include "dispatch/call.h"
#include "dispatch/registration.h"
#include "ops/computed.h"

namespace cresset {
namespace {

enum Norm { kCount, kSum, kRoot, kLargest, kPower };

Norm norm_of(double p) { return p == 0 ? kCount : p == 1 ? kSum : p == 2 ? kRoot : std::isinf(p) ? kLargest : kPower; }

// So many distances are computed side by side, from so many coordinates at a time.
constexpr int64_t kSideBySide = 32, kCoordinates = 128;

// Of floats in vectors; of doubles, where inlining it twice would be half of this file's code, one at a time.
CRESSET_INLINE float power(float x, float p) { return math::pow(x, p); }
CRESSET_INLINE double power(double x, double p) { return std::pow(x, p); }

// A power is long code, and gets fewer copies of it.
template <template <class, bool> class Loop, class T, class... Args>
void run_norm(Norm norm, Args... args) {
  if (norm == kPower)
    run_vectorized_256<Loop<T, true>>(norm, args...);
  else
    run_vectorized<Loop<T, false>>(norm, args...);
}

// Adds to `totals` (rows of kSideBySide numbers) what `count` coordinates of each point of `x` and of the turned points
// `others` give. Each distance is summed in the order of the coordinates, on every instruction set and in every thread.
template <class T, bool kIsPower>
struct DistanceLoop {
  template <class Fma>
  CRESSET_INLINE void run(Norm norm, T p, const T* x, int64_t step, int64_t rows, const T* others, int64_t count,
                          T* totals) {
    const auto sum = [&](auto term, auto add) __attribute__((always_inline)) {
      for (int64_t i = 0; i < rows; ++i) {
        T* const to = totals + i * kSideBySide;
        T kept[kSideBySide];
        for (int64_t j = 0; j < kSideBySide; ++j) kept[j] = to[j];
        for (int64_t m = 0; m < count; ++m) {
          const T at = x[i * step + m];
          const T* const other = others + m * kSideBySide;
          for (int64_t j = 0; j < kSideBySide; ++j) kept[j] = add(kept[j], term(at - other[j]));
        }
        for (int64_t j = 0; j < kSideBySide; ++j) to[j] = kept[j];
      }
    };
    const auto plus = [](T a, T b) __attribute__((always_inline)) { return a + b; };
    // nan != 0, and is larger than every number.
    const auto larger = [](T a, T b) __attribute__((always_inline)) { return b > a || b != b ? b : a; };
    const auto size = [](T d) __attribute__((always_inline)) { return math::abs(d); };
    if constexpr (kIsPower)
      return sum([p](T d) __attribute__((always_inline)) { return power(math::abs(d), p); }, plus);
    if (norm == kCount)
      sum([](T d) __attribute__((always_inline)) { return d != 0 ? (d != d ? d : T(1)) : T(0); }, plus);
    if (norm == kSum) sum(size, plus);
    if (norm == kRoot) sum([](T d) __attribute__((always_inline)) { return d * d; }, plus);
    if (norm == kLargest) sum(size, larger);
  }
};

// The gradient of one point: over the points of `others` (rows of `n` coordinates), weights[j] times the derivative of
// the distance to the power of p, or of the largest coordinate.
template <class T, bool kIsPower>
struct GradientLoop {
  template <class Fma>
  CRESSET_INLINE void run(Norm norm, T p, const T* x, const T* others, int64_t rows, int64_t n, const T* weights,
                          const T* distances, T* gradient) {
    const auto sum = [&](auto term) __attribute__((always_inline)) {
      for (int64_t j = 0; j < rows; ++j) {
        const T weight = weights[j], distance = distances[j];
        const T* const other = others + j * n;
        if (distance == 0) continue;  // the slope of a distance at zero is taken as zero
        for (int64_t m = 0; m < n; ++m) gradient[m] += weight * term(x[m] - other[m], distance);
      }
    };
    const auto sign = [](T d) __attribute__((always_inline)) { return d != d ? d : T(d > 0) - T(d < 0); };
    if constexpr (kIsPower)
      return sum([sign, p](T d, T)
                     __attribute__((always_inline)) { return d == 0 ? d : sign(d) * power(math::abs(d), p - 1); });
    if (norm == kSum) sum([sign](T d, T) __attribute__((always_inline)) { return sign(d); });
    if (norm == kRoot) sum([](T d, T) __attribute__((always_inline)) { return d; });
    if (norm == kLargest)
      sum([sign](T d, T distance) __attribute__((always_inline)) { return math::abs(d) == distance ? sign(d) : T(0); });
  }
};

// Points of a batch: [batch][rows][n].
struct Points {
  Tensor tensor;
  int64_t rows, n;
  Points(const Tensor& t, Dtype computed) : tensor(contiguous(convert(t, computed))), rows(t.size(-2)), n(t.size(-1)) {}
};
int64_t batch_of(const Tensor& out) {
  int64_t batch = 1;
  for (int64_t d = 0; d + 2 < out.dim(); ++d) batch *= out.size(d);
  return batch;
}
void check_points(const char* who, const Tensor& x1, const Tensor& x2) {
  for (const auto& [x, name] : {std::pair(&x1, "X1"), std::pair(&x2, "X2")}) {
    check(is_floating(x->dtype()), who, " only supports floating-point dtypes, ", name, " got: ", name_of(x->dtype()));
    check(x->dim() >= 2, who, " only supports at least 2D tensors, ", name, " got: ", x->dim(), "D");
  }
  check(x1.dtype() == x2.dtype(), who, ": expected scalar type ", name_of(x1.dtype()), " but found ",
        name_of(x2.dtype()));
  check(x1.device() == x2.device(), who, ": X1 and X2 must have the same device type. X1: ", x1.device(),
        " X2: ", x2.device());
  check(x1.size(-1) == x2.size(-1), who, ": X1 and X2 must have the same number of columns. X1: ", x1.size(-1),
        " X2: ", x2.size(-1));
  check(x1.dim() == x2.dim() && std::equal(x1.sizes().begin(), x1.sizes().end() - 2, x2.sizes().begin()), who,
        ": X1 and X2 must have the same leading dimensions, got shapes ", list(x1.sizes()), " and ", list(x2.sizes()));
}

void infer_cdist(Call& c) {
  const Tensor x1 = c.tensor(0), x2 = c.tensor(1);
  check_points("cdist", x1, x2);
  check(c.real(2) >= 0, "cdist only supports non-negative p values, got ", c.real(2));
  Dims sizes(x1.sizes().begin(), x1.sizes().end());
  sizes[sizes.size() - 1] = x2.size(-2);
  c.promise(sizes, x1.dtype(), x1.device());
}

// Of points among themselves a distance is computed once, by the block of rows that comes first, and written twice.
template <class T>
void distances(const Points& a, const Points& b, double p, const Tensor& out) {
  const Norm norm = norm_of(p);
  const T *const first = a.tensor.data<T>(), *const second = b.tensor.data<T>();
  T* const to = out.data<T>();
  const bool mirrors = first == second && a.rows == b.rows;
  const int64_t n = a.n, grain = std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, b.rows * n));
  parallel_for(batch_of(out) * a.rows, grain, [&](int64_t begin, int64_t end) {
    constexpr int64_t kRows = 64;
    alignas(64) T turned[kCoordinates * kSideBySide], totals[kRows * kSideBySide];
    for (int64_t row = begin, rows; row < end; row += rows) {
      const int64_t batch = row / a.rows;
      rows = std::min({end - row, kRows, (batch + 1) * a.rows - row});
      const T* const others = second + batch * b.rows * n;
      const int64_t own = mirrors ? row - batch * a.rows : 0, own_end = own + rows;
      T* const results = to + batch * a.rows * b.rows;
      for (int64_t j = own / kSideBySide * kSideBySide; j < b.rows; j += kSideBySide) {
        const int64_t width = std::min(kSideBySide, b.rows - j);
        std::fill(totals, totals + rows * kSideBySide, T(0));
        for (int64_t m = 0; m < n; m += kCoordinates) {
          const int64_t count = std::min(kCoordinates, n - m);
          for (int64_t side = 0; side < kSideBySide; ++side) {
            const T* const from = others + (j + std::min(side, width - 1)) * n + m;
            for (int64_t i = 0; i < count; ++i) turned[i * kSideBySide + side] = from[i];
          }
          run_norm<DistanceLoop, T>(norm, static_cast<T>(p), first + row * n + m, n, rows,
                                    static_cast<const T*>(turned), count, static_cast<T*>(totals));
        }
        if (norm == kRoot)
          for (int64_t i = 0; i < rows * kSideBySide; ++i) totals[i] = std::sqrt(totals[i]);
        if (norm == kPower)
          for (int64_t i = 0; i < rows * kSideBySide; ++i) totals[i] = std::pow(totals[i], static_cast<T>(1 / p));
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t side = std::max<int64_t>(0, own - j); side < width; ++side)
            to[(row + i) * b.rows + j + side] = totals[i * kSideBySide + side];
        for (int64_t side = std::max<int64_t>(0, own_end - j); mirrors && side < width; ++side)
          for (int64_t i = 0; i < rows; ++i) results[(j + side) * b.rows + own + i] = totals[i * kSideBySide + side];
      }
    }
  });
}

void run_cdist(Call& c) {
  const Tensor out = c.out();
  if (out.numel() == 0) return;
  const Dtype computed = computed_dtype(out.dtype());
  const Points a(c.tensor(0), computed), b(c.tensor(1), computed);
  const Tensor to = computed == out.dtype() ? out : empty(out.sizes(), computed);
  if (computed == Dtype::f64)
    distances<double>(a, b, c.real(2), to);
  else
    distances<float>(a, b, c.real(2), to);
  if (to.get() != out.get()) copy_into(out, to);
}

// grad_output, x1, x2, p, the distances: the gradient of x1.
void infer_cdist_backward(Call& c) {
  const Tensor x1 = c.tensor(1);
  check_points("_cdist_backward", x1, c.tensor(2));
  for (const int i : {0, 4})
    check(c.tensor(i).dim() == x1.dim() && c.tensor(i).size(-2) == x1.size(-2) &&
              c.tensor(i).size(-1) == c.tensor(2).size(-2),
          "_cdist_backward: expected a number for each pair of points, got shape ", list(c.tensor(i).sizes()),
          " for points of shapes ", list(x1.sizes()), " and ", list(c.tensor(2).sizes()));
  c.promise(x1.sizes(), x1.dtype(), x1.device());
}

template <class T>
void gradients(const Points& a, const Points& b, const Tensor& grad, const Tensor& distance, double p,
               const Tensor& out) {
  const Norm norm = norm_of(p);
  const int64_t n = a.n, grain = std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, b.rows * n));
  parallel_for(batch_of(out) * a.rows, grain, [&](int64_t begin, int64_t end) {
    constexpr int64_t kWeights = 256;
    T weights[kWeights];
    for (int64_t row = begin; row < end; ++row) {
      T* const to = out.data<T>() + row * n;
      std::fill(to, to + n, T(0));
      for (int64_t j = 0; j < b.rows; j += kWeights) {
        const int64_t count = std::min(kWeights, b.rows - j);
        const T *const g = grad.data<T>() + row * b.rows + j, *const d = distance.data<T>() + row * b.rows + j;
        for (int64_t i = 0; i < count; ++i)
          weights[i] = norm == kRoot    ? g[i] / d[i]
                       : norm == kPower ? g[i] / std::pow(d[i], static_cast<T>(p - 1))
                                        : g[i];
        run_norm<GradientLoop, T>(norm, static_cast<T>(p), a.tensor.data<T>() + row * n,
                                  static_cast<const T*>(b.tensor.data<T>() + (row / a.rows * b.rows + j) * n), count, n,
                                  static_cast<const T*>(weights), d, to);
      }
    }
  });
}

void run_cdist_backward(Call& c) {
  const Tensor out = c.out();
  if (out.numel() == 0) return;
  const Dtype computed = computed_dtype(out.dtype());
  const Points a(c.tensor(1), computed), b(c.tensor(2), computed);
  const Tensor grad = contiguous(convert(c.tensor(0), computed)), distance = contiguous(convert(c.tensor(4), computed));
  const Tensor to = computed == out.dtype() ? out : empty(out.sizes(), computed);
  if (computed == Dtype::f64)
    gradients<double>(a, b, grad, distance, c.real(3), to);
  else
    gradients<float>(a, b, grad, distance, c.real(3), to);
  if (to.get() != out.get()) copy_into(out, to);
}

}  // namespace

REGISTER(distance) {
  r.add("_cdist(Tensor x1, Tensor x2, float p) -> Tensor", infer_cdist, run_cdist, kFunctionOnly);
  r.add("_cdist_backward(Tensor grad_output, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
        infer_cdist_backward, run_cdist_backward, kFunctionOnly);
}

}  // namespace cresset
